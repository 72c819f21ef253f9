"""Brier: the quadratic score (Brier 1950; Gneiting and Raftery 2007), proper, without distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from smmd_bench.contracts import NumericLoss, NumericTargets, NumericVocabulary, factor


@dataclass(frozen=True)
class BrierScore:
    """L = L_CE + lambda L_Brier.

    At a position whose target y is in V_num, with p = softmax(l[V_num]) (eq:pq_p),

        L_Brier = sum_i (p_i - [i = pi(y)])^2

    averaged over numeric positions. It is r^T K r of smmd (eq:loss_mmd) with K = I: what is left of
    the squared MMD without distances. It is strictly proper, bounded by 2, and equal for all wrong
    values. lambda = 3 is that of smmd, so that the two differ in the kernel alone.

    The tokenised Brier score of ConfTuner (Li et al. 2025, arXiv 2508.18847, read in a summary) is
    another: sum_i p_i (c_i - [correct])^2 over tokens of confidences c_i, which is linear in p.
    """

    name: ClassVar[str] = "brier"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    relative_scale: ClassVar[dict[int, float]] = {10: 1.17, 1000: 0.434}
    weight: float = factor(3.0)

    def bind(self, vocabulary: NumericVocabulary) -> _BrierTerm:
        """The score over V_num as a module."""
        return _BrierTerm(self, vocabulary)


class _BrierTerm(NumericLoss):
    separable = True

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        return numeric.residual().square().sum(), numeric.target.numel()
