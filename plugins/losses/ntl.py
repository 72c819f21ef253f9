"""NTL: the Wasserstein-1 number token loss (Zausinger et al. 2025; app. eq:ntl_was_1d)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from smmd_bench.contracts import NumericTargets
from smmd_bench.numbers import NumericVocabulary
from smmd_bench.parameters import non_negative, parameter
from smmd_bench.training.numeric_loss import NumericLoss


@dataclass(frozen=True)
class NumberTokenLoss:
    """L = L_CE + lambda L_NTL (eq:ce_plus_ntl_app).

    At a position whose target y is in V_num, with p = softmax(l[V_num]) (eq:pq_p),

        L_NTL = sum_i p_i |v_i - v_{pi(y)}|

    which is the Wasserstein-1 distance of p to the one-hot target. The authors' package `ntloss`
    gives the same with `NTLoss(reweigh=False)`; its default mixes in the probability mass outside
    V_num, which neither paper does.
    """

    name: ClassVar[str] = "ntl"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    weight: float = parameter(2.0, "weight of the auxiliary", name="lambda", check=non_negative)

    def bind(self, vocabulary: NumericVocabulary) -> Wasserstein:
        """The distance |v_i - v_j| as a module."""
        return Wasserstein(self, vocabulary)


class Wasserstein(NumericLoss):
    """Expected distance of the predicted value from the target's."""

    separable = True
    values: Tensor  # [N]

    def __init__(self, loss: NumberTokenLoss, vocabulary: NumericVocabulary) -> None:
        super().__init__(loss, vocabulary)
        self.constant("values", vocabulary.values)

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        """Sum over numeric positions, and how many there are."""
        v = self.values.to(numeric.logits.dtype)  # [N]
        p = numeric.logits.softmax(-1)  # [M, N]
        distance = (v - v[numeric.target, None]).abs()  # [M, N]
        return (p * distance).sum(), numeric.target.numel()
