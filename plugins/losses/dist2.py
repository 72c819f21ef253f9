"""DIST2: distance-aware soft targets (Chung et al., ICLR 2026, arXiv 2503.02379)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from smmd_bench.contracts import (
    NumericLoss,
    NumericTargets,
    NumericVocabulary,
    bandwidth,
    factor,
    parameter,
)


@dataclass(frozen=True)
class DistanceTargets:
    """L = L_CE + lambda KL(q || p).

    At a position whose target y is in V_num, with p = softmax(l[V_num]),

        q_i ~ exp(-|v_i - v_{pi(y)}|^2 / tau),  sum_i q_i = 1

    lambda = 0.1 and tau = 1 are the source's for numbers; the SMMD paper has no such row. The
    source writes p as the model's distribution over all tokens, of which those in V_num enter the
    sum: `support=vocabulary`. By default p is restricted to V_num as in every other loss here, so
    that they differ in their penalties alone. The source's contrastive targets and place-value
    weights are left out; no code of its authors was found.
    """

    name: ClassVar[str] = "dist2"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    relative_scale: ClassVar[dict[int, float]] = {10: 0.058, 1000: 0.085}
    tau: float = parameter(
        1.0, "temperature, in units of squared value", check=bandwidth
    )
    support: Literal["numeric", "vocabulary"] = parameter(
        "numeric", "what p is normalised over"
    )
    weight: float = factor(0.1)

    def bind(self, vocabulary: NumericVocabulary) -> _DistanceTargetTerm:
        """The divergence with the values of V_num as a module."""
        return _DistanceTargetTerm(self, vocabulary)


class _DistanceTargetTerm(NumericLoss):
    separable = True

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        x = numeric.logits  # [M, N]
        v = self.values.to(x.dtype)  # [N]
        distance = v - v[numeric.target, None]  # [M, N]
        exponent = -(distance**2) / self.loss.tau  # [M, N]
        log_q = exponent.log_softmax(-1)  # [M, N]
        q = log_q.exp()  # [M, N]
        # As log p = x - partition, and q adds up to 1, the partition comes out of the sum.
        partition = numeric.partition(self.loss.support)  # [M]
        divergence = (q * (log_q - x)).sum(-1) + partition  # [M]
        return divergence.sum(), numeric.target.numel()
