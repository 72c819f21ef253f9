"""DEL: the digit entropy loss (Zheng et al. 2026, arXiv 2605.20369)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn import functional as F

from smmd_bench.contracts import NumericLoss, NumericTargets, NumericVocabulary, factor


@dataclass(frozen=True)
class DigitEntropyLoss:
    """L = L_CE + lambda L_DEL.

    At a position whose target y is in V_num, with the logits l of V_num, p = softmax(l) (eq:pq_p)
    and w by the place of the digit in its number,

        L_DEL = w / 10 sum_i p_i BCE(sigmoid(l_i), [i = pi(y)])
        w = 2 (k + 1)            for a digit with k more before the point (or the end)
        w = 1.02^-(j + 1)        for the j-th digit after the point

    averaged over numeric positions: the entropy sum_i p_i (-log p_i), which knows no target, with
    -log p_i replaced by a cross-entropy with the target.

    The paper's text could not be opened, only its abstract; the formula is that of the authors'
    code (github.com/PolyU-VCLab/DEL, train-qwen-deepseek.py at 9f6ad5c). lambda = 0.01 is its, for
    Qwen and DeepSeek; its script for CodeLlama and Mistral has 0.1. It knows single digits alone:
    with tokens of several digits the sum is over all of V_num here, still over 10, and k counts
    the digits after the token.

    Decimals: the digits of 12.58 have the weights 4, 2, 1.02^-2 and 1.02^-3, whatever the sign; the
    point and the sign have none, and at N = 1000 the token 58 has that of its last digit. A comma
    ends a number, as there: 1,234.5 is 1 and 234.5. Two differences: in .5 the digit has 1.02^-2,
    as in 0.5 (there 2, as in 5); and a number with several points (3.11.2) is one number there,
    whose first point counts, while here each part is one.

    The sigmoid is of the logits themselves, so that L_DEL changes where a constant is added to
    all of them, as no other loss here does.
    """

    name: ClassVar[str] = "del"
    version: ClassVar[int] = 2
    replaces_cross_entropy: ClassVar[bool] = False
    relative_scale: ClassVar[dict[int, float]] = {10: 0.000602, 1000: 0.000201}
    relative_scale_of: ClassVar[str] = "numbers of one token, with logits of 0"
    weight: float = factor(0.01)

    def bind(self, vocabulary: NumericVocabulary) -> _DigitEntropyTerm:
        """The loss over V_num as a module."""
        return _DigitEntropyTerm(self, vocabulary)


class _DigitEntropyTerm(NumericLoss):
    separable = True

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        x = numeric.logits  # [M, N]
        target = numeric.target[:, None]  # [M, 1]
        # BCE against 0 is -log sigmoid(-l), and -log sigmoid(l) at the target.
        right = (-x).scatter(1, target, x.gather(1, target))  # [M, N]
        entropy = -(x.softmax(-1) * F.logsigmoid(right)).sum(-1)  # [M]

        k = numeric.place.abs().log10()  # [M], -1 right after the point
        weight = (2 * (k + 1)).where(k > -0.5, 1.02 ** (k - 1))  # [M]
        return (weight.to(x.dtype) @ entropy) / 10, numeric.target.numel()
