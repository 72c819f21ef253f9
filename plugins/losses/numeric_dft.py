"""DFT at numbers: dynamic fine-tuning (Wu et al. 2025, arXiv 2508.05629) of numeric tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from smmd_bench.contracts import NumericLoss, NumericTargets, NumericVocabulary, factor


@dataclass(frozen=True)
class NumericDynamicFineTuning:
    """L = L_CE + lambda L_DFT.

    At a position whose target y is in V_num, with p = softmax(l) over all tokens,

        L_DFT = -sg(p_y) log p_y

    averaged over numeric positions; sg stops the gradient, which therefore is that of 1 - p_y. It
    is a control beside numeric_ce: the same extra weight on numeric tokens, times p_y, so that it
    falls where the model is unsure, as DFT has it in place of the cross-entropy of every token.

    Only the abstract of the paper could be opened; the formula is that of TRL's `loss_type="dft"`
    (trl/trainer/sft_trainer.py at 00313f2). lambda = 1 is that of numeric_ce.
    """

    name: ClassVar[str] = "numeric_dft"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    relative_scale: ClassVar[dict[int, float]] = {10: 0.1, 1000: 0.001}
    weight: float = factor(1.0)

    def bind(self, vocabulary: NumericVocabulary) -> _DynamicTerm:
        """The loss of numeric positions as a module."""
        return _DynamicTerm(self, vocabulary)


class _DynamicTerm(NumericLoss):
    separable = True
    stops_gradient = True

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        right = numeric.logits.gather(1, numeric.target[:, None]).squeeze(1)  # [M]
        log_p = right - numeric.log_partition  # [M]
        return -(log_p.detach().exp() * log_p).sum(), numeric.target.numel()
