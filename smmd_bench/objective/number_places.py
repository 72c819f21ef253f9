"""The numbers among the targets of a batch: which tokens spell one, and what each counts in it."""

from __future__ import annotations

import torch
from torch import Tensor

from ..contracts import NumericVocabulary, number_spans

_LARGEST_EXPONENT = 300
"""Places beyond it count like it: 10^308 is the largest power in float64."""


def number_places(
    vocabulary: NumericVocabulary, label: Tensor, target: Tensor, row: Tensor, position: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(number [M] int64, place [M] float64, whole [M] bool) of the numeric tokens, see
    `NumericPlaces`.

    Of all T supervised tokens, in reading order: label, target (indices into V_num, -1 outside it),
    row and position, [T] int64 each.

    A number is a run of digit tokens, in V_num or not, and of a second run after a decimal point
    with a digit on either side; a token with a space before its digits begins another one. With
    several points, as in `3.11.2`, each run is one. A comma, an unsupervised token and the end of a
    row end it. It is negative after a minus sign that does not itself follow a numeric token. A
    point or sign inside a larger token, such as `=-`, is not seen.
    """
    other = vocabulary.other_digits_of(label)  # [T]
    numeric = (target >= 0) | (other > 0)  # [T]
    index = numeric.nonzero().squeeze(1)  # [D]
    own = target[index] >= 0  # [D], M of them
    digits = vocabulary.digits_of(target[index]).where(own, other[index])  # [D]
    spelled = torch.zeros_like(target).index_copy(0, index, digits)  # [T]
    token, before = label[index - 1], (index - 2).clamp(min=0)  # [D], used only where near
    near, nearer = (_follows(row, position, index, step) for step in (2, 1))  # [D]
    joined = _is_one_of(vocabulary.points, token) & near & nearer & (spelled[before] > 0)
    joined &= digits > 0
    minus = _is_one_of(vocabulary.minuses, token) & nearer & ~(near & numeric[before])
    apart = _is_one_of(vocabulary.opens, label[index])  # [D]
    minus &= ~apart
    joined &= ~apart & ~_is_one_of(vocabulary.closes, label[before])
    apart |= _is_one_of(vocabulary.closes, token) & nearer
    number, after = number_spans(row[index], position[index], digits, joined, apart)
    nothing = torch.zeros_like(number)  # [D], of each number
    if bool(joined.any()):
        points = nothing.index_add(0, number, joined.long())
        if bool((points > 1).any()):
            joined &= points[number] == 1
            number, after = number_spans(row[index], position[index], digits, joined, apart)
        decimals = nothing.index_add(0, number[joined], (after + digits)[joined])
        after = after - decimals[number]
    place = 10.0 ** after.clamp(-_LARGEST_EXPONENT, _LARGEST_EXPONENT).double()
    negative = nothing.index_add(0, number, minus.long()) > 0
    place = place.where(~negative[number], -place)[own]
    whole = (nothing.index_add(0, number, (~own).long()) == 0)[number][own]
    return torch.unique_consecutive(number[own], return_inverse=True)[1], place, whole


def _follows(row: Tensor, position: Tensor, index: Tensor, step: int) -> Tensor:
    """Which tokens stand so many positions after one that is as many tokens before: [D] bool."""
    other = (index - step).clamp(min=0)
    return (row[other] == row[index]) & (position[other] == position[index] - step)


def _is_one_of(tokens: tuple[int, ...], label: Tensor) -> Tensor:
    return torch.isin(label, torch.tensor(tokens, dtype=label.dtype, device=label.device))
