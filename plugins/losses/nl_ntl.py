"""NL-NTL: the number token loss of whole numbers (`NumberLevelLoss` of ntloss)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from smmd_bench.contracts import (
    NumericLoss,
    NumericPlaces,
    NumericTargets,
    NumericVocabulary,
    factor,
    number_spans,
    parameter,
)

_EPSILON = torch.finfo(torch.float32).eps
_LARGEST_EXPONENT = 300
"""Places beyond it count like it: 10^308 is the largest power in float64."""


@dataclass(frozen=True)
class NumberLevelTokenLoss:
    """L = L_CE + lambda L_NL-NTL.

    For a number whose tokens y_k have the place values b_k (100, 10, 1), with p^(k) = softmax of
    the logits of V_num at the k-th (eq:pq_p),

        X = sum_k b_k sum_i p_i^(k) v_i          Y = sum_k b_k v_{pi(y_k)}
        L_NL-NTL = |X - Y| / (|X| + |Y| + epsilon)

    averaged over numbers: the error of the number rebuilt from expected digits, relative, so from 0
    to 1 whatever its size. epsilon = 2^-23. Signs cancel: that of X is Y's. A number with digits
    outside V_num before or after its point, such as 10005 spelled 100 and "05", or 3.05, is left
    out with both its parts.

    Decimals: a point ends a number, as in the source, so that 12.58 is 12 and 58, and -0.05 is 0
    and 5. With `decimals` (`float_level` there) it is one number, with the place values 10, 1, 0.1,
    0.01; a token of several digits after the point counts by its own digits, so that where 58 is
    right, 5 is 0.5. A comma always ends a number, as there: 1,234.5 is 1 and 234.5.

    It is `NumberLevelLoss` of the authors' package, ntloss 0.3.2 (github.com/ai4sd/
    number-token-loss), which differs in two ways. It knows single digits alone; here a token of
    several digits counts 10^(digits after it) times. It has `reweigh` on by default, m L + 1.01
    (1 - m) with the mass m on V_num at the number's first token, of which its own documentation
    says that the loss explodes with it. No paper has this loss, and no source gives lambda: 1 is
    ours.

    At Y = 0 it is X / (X + epsilon): nearly 1, and flat, for any X above 10^-5.
    """

    name: ClassVar[str] = "nl_ntl"
    version: ClassVar[int] = 3
    replaces_cross_entropy: ClassVar[bool] = False
    relative_scale: ClassVar[dict[int, float]] = {10: 0.144, 1000: 0.0417}
    relative_scale_of: ClassVar[str] = "numbers of one token"
    weight: float = factor(1.0)
    decimals: bool = parameter(False, "a number goes on after its decimal point")
    reweigh: bool = parameter(
        False, "charge probability outside V_num, as ntloss does by default"
    )

    def bind(self, vocabulary: NumericVocabulary) -> _NumberLevelTerm:
        """The loss with the values of V_num as a module."""
        return _NumberLevelTerm(self, vocabulary)


class _NumberLevelTerm(NumericLoss):
    def find_spans(self, places: NumericPlaces) -> dict[str, Tensor]:
        """The W positions of whole numbers (`index`), with number and place value of each [W]; and
        which of them the S numbers start at [S]."""
        index = places.whole.nonzero().squeeze(1)
        if self.loss.decimals:
            _, number = places.number[index].unique_consecutive(return_inverse=True)
            place = places.place[index]
        else:  # a point ends a number, so its places are counted again
            digits = self.vocabulary.digits_of(places.target[index])
            number, exponent = number_spans(
                places.number[index], places.position[index], digits
            )
            exponent = exponent.clamp(max=_LARGEST_EXPONENT)
            place = 10.0 ** exponent.double()

        # Before the first number, which is 0, stands -1: it begins, too.
        changes = torch.diff(number, prepend=number.new_tensor([-1]))
        return {
            "index": index,
            "number": number,
            "place": place,
            "starts": changes.nonzero().squeeze(1),
        }

    def units(self, places: NumericPlaces) -> int:
        """How many numbers there are."""
        return len(self.spans(places)["starts"])

    def forward(self, numeric: NumericTargets) -> tuple[Tensor, int]:
        spans = self.spans(numeric)
        index = spans["index"]  # [W]
        number = spans["number"]  # [W]
        place = spans["place"]  # [W]
        x = numeric.logits[index]  # [W, N]
        target = numeric.target[index]  # [W]
        v = self.values.to(x.device)  # [N] float64
        p = x.softmax(-1)  # [W, N]
        expected = self.expected_values(p, target, place)  # [W]

        zeros = place.new_zeros(len(spans["starts"]))  # [S]
        # In float64, as the places of long numbers are.
        X = zeros.index_add(0, number, place * expected)  # [S]
        Y = zeros.index_add(0, number, place * v[target])  # [S]
        size = X.abs() + Y.abs() + _EPSILON  # [S]
        error = (X - Y).abs() / size  # [S]

        if self.loss.reweigh:
            log_mass = x.logsumexp(-1) - numeric.log_partition[index]  # [W]
            # [S], of the first token of each number
            mass = log_mass.exp()[spans["starts"]]
            error = mass * error + 1.01 * (1 - mass)
        return error.sum().to(x.dtype), len(zeros)
