"""CE at numbers: a plain extra weight on the cross-entropy of numeric tokens, without distances."""

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


@dataclass(frozen=True)
class NumericCrossEntropy:
    """L = L_CE + lambda L_num.

    At a position whose target y is in V_num, with the logits l,

        L_num = -log softmax(l)_y                     support=vocabulary
        L_num = -log softmax(l[V_num])_{pi(y)}        support=numeric

    averaged over numeric positions. It is in no paper: it is the control for every loss that is
    added at numeric positions, because each of them also gives these positions more weight. It
    weights a numeric token by 1 + lambda T / M, for M numeric ones of T supervised tokens.

    lambda = 1 doubles what a batch of numbers alone would cost; no source gives another.
    """

    name: ClassVar[str] = "numeric_ce"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    relative_scale: ClassVar[dict[int, float]] = {10: 1, 1000: 1}
    weight: float = factor(1.0)
    support: Literal["vocabulary", "numeric"] = parameter(
        "vocabulary", "what p is normalised over"
    )

    def bind(self, vocabulary: NumericVocabulary) -> _NumericCrossEntropyTerm:
        """The cross-entropy of numeric positions as a module."""
        return _NumericCrossEntropyTerm(self, vocabulary)


class _NumericCrossEntropyTerm(NumericLoss):
    separable = True

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        right = numeric.logits.gather(1, numeric.target[:, None]).squeeze(1)  # [M]
        cross_entropy = numeric.partition(self.loss.support) - right  # [M]
        return cross_entropy.sum(), numeric.target.numel()
