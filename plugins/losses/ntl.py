"""NTL: the number token loss (Zausinger et al. 2025; app. eq:ntl_was_1d), and its variants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from smmd_bench.contracts import (
    NumericLoss,
    NumericTargets,
    NumericVocabulary,
    factor,
    parameter,
)

from ._squash import more_than_one, squash_distances


@dataclass(frozen=True)
class NumberTokenLoss:
    """L = L_CE + lambda L_NTL (eq:ce_plus_ntl_app).

    At a position whose target y is in V_num, with p = softmax(l[V_num]) (eq:pq_p),

        L_NTL = sum_i p_i |v_i - v_{pi(y)}|            kind=wasserstein, the papers' default
        L_NTL = (sum_i p_i v_i - v_{pi(y)})^2          kind=mse

    The first is the Wasserstein-1 distance of p to the one-hot target. It is in units of value: at
    N = 1000 a hundred times larger than at N = 10.

    The authors' package, ntloss 0.3.2 (github.com/ai4sd/number-token-loss), differs in two ways,
    which neither paper has:

    `reweigh` (its default) weights with the probability mass m that the model gives to V_num, and
    charges the rest with 1.01 times the largest distance: m L_NTL + 1.01 D (1 - m), with D = max
    |v_i - v_j|, or its square for kind=mse.

    `squash=k` (`squash_factor`) maps the distances linearly, so that the nearest wrong value costs
    1 and the farthest k, as `squash` of smmd does.
    """

    name: ClassVar[str] = "ntl"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    relative_scale: ClassVar[dict[int, float]] = {10: 2.9, 1000: 97}
    weight: float = factor(2.0)
    kind: Literal["wasserstein", "mse"] = parameter(
        "wasserstein", "expected distance, or squared error of the expected value"
    )
    reweigh: bool = parameter(
        False, "charge probability outside V_num, as ntloss does by default"
    )
    squash: float | None = parameter(
        None,
        "cost of the farthest value, that of the nearest being 1",
        check=more_than_one,
    )

    def __post_init__(self) -> None:
        if self.squash is not None and self.kind == "mse":
            raise ValueError(
                "squash changes distances, and kind=mse has none: leave one out."
            )

    def bind(self, vocabulary: NumericVocabulary) -> _NumberTokenTerm:
        """The loss with the values of V_num as a module."""
        return _NumberTokenTerm(self, vocabulary)


class _NumberTokenTerm(NumericLoss):
    separable = True

    def __init__(self, loss: NumberTokenLoss, vocabulary: NumericVocabulary) -> None:
        super().__init__(loss, vocabulary)
        farthest = vocabulary.values[-1] - vocabulary.values[0]
        worst = farthest**2 if loss.kind == "mse" else self.distance(farthest)
        # what mass outside V_num is charged, but for the 1.01
        self.worst = float(worst)

    def distance(self, difference: Tensor) -> Tensor:
        return squash_distances(
            difference.abs(), self.vocabulary.values, self.loss.squash
        )

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        x = numeric.logits  # [M, N]
        v = self.values.to(x.dtype)  # [N]
        truth = v[numeric.target, None]  # [M, 1]
        p = x.softmax(-1)  # [M, N]
        # Both kinds keep a column, so that what follows need not know which it is.
        if self.loss.kind == "mse":
            expected = p @ v[:, None]  # [M, 1]
            cost = (expected - truth) ** 2  # [M, 1]
        else:
            cost = p * self.distance(v - truth)  # [M, N]

        if self.loss.reweigh:
            mass = (x.logsumexp(-1) - numeric.log_partition).exp()  # [M]
            cost = mass * cost.sum(-1) + 1.01 * self.worst * (1 - mass)  # [M]
        return cost.sum(), numeric.target.numel()
