"""A loss in one file.

    smmd-bench train-eval --task arithmetic --losses ce,huber --plugin examples/own_loss.py

The Huber loss of the expected value: sum_i p_i v_i against v_y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn import functional as F

from smmd_bench.contracts import (
    NumericLoss,
    NumericTargets,
    NumericVocabulary,
    non_negative,
    parameter,
    positive,
)


@dataclass(frozen=True)
class Huber:
    """L = L_CE + lambda * Huber(E_p[v] - v_y): an example of a loss of one's own."""

    name: ClassVar[str] = "huber"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False

    weight: float = parameter(
        0.5, "weight of the auxiliary", name="lambda", check=non_negative
    )
    delta: float = parameter(1.0, "where the square turns into a line", check=positive)

    def bind(self, vocabulary: NumericVocabulary) -> NumericLoss:
        """The auxiliary with the values of V_num."""
        return _Huber(self, vocabulary)


class _Huber(NumericLoss):
    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        """(sum, number of numeric positions)."""
        values = self.values.to(numeric.logits)  # [N]
        expected = numeric.logits.softmax(-1) @ values  # [M]
        loss = F.huber_loss(
            expected, values[numeric.target], reduction="sum", delta=self.loss.delta
        )
        return loss, numeric.target.numel()
