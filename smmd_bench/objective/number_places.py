"""The numbers among the targets of a batch: which tokens spell one, and what each counts in it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..contracts import NumericVocabulary, number_spans

_LARGEST_EXPONENT = 300
"""Places beyond it count like it: 10^308 is the largest power in float64."""


def number_places(
    vocabulary: NumericVocabulary,
    label: Tensor,
    target: Tensor,
    row: Tensor,
    position: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """(number [M] int64, place [M] float64, whole [M] bool) of the numeric tokens, see
    `NumericPlaces`.

    Of all T supervised tokens, in reading order: label, target (indices into V_num, -1 outside it),
    row and position, [T] int64 each.

    A number is a run of digit tokens, in V_num or not, and of a second run after a decimal point
    with a digit on either side; a token with a space before its digits begins another one. `.5` is
    0.5 where the row begins with it, after a space and after a sign or bracket; after anything
    else, such as a word, the point ends a sentence. With several points, as in `3.11.2`, each run
    is one. A comma, an unsupervised token and the end of a row end it, so that `1,234.5` is 1 and
    234.5: no token says whether a comma parts thousands, decimals or numbers. It is negative after
    a minus sign that does not itself follow a numeric token. A point or sign inside a larger token,
    such as `=-`, is not seen.
    """
    text = _Text(label, row, position)
    other_digits = vocabulary.other_digits_of(label)  # [T]
    is_numeric = (target >= 0) | (other_digits > 0)  # [T]
    index = is_numeric.nonzero().squeeze(1)  # [D]
    numeric_target = target[index]  # [D]
    in_vocabulary = numeric_target >= 0  # [D], M of them
    digits = vocabulary.digits_of(numeric_target)  # [D]
    digits = digits.where(in_vocabulary, other_digits[index])
    # [T], digits of each token
    spelled = torch.zeros_like(target).index_copy(0, index, digits)

    joined, leading = _find_points(vocabulary, text, spelled, index)
    first = index - leading.long()  # [D], a number may begin with its point
    minus = _find_signs(vocabulary, text, is_numeric, first)

    after_closed = text.is_one_of(vocabulary.closes, index - 1)
    after_closed &= text.has(index, 1)
    apart = after_closed | text.is_one_of(vocabulary.opens, index)  # [D]
    runs = row[index], position[index], digits
    number, exponent = _find_numbers(runs, joined, leading, apart)

    exponent = exponent.clamp(-_LARGEST_EXPONENT, _LARGEST_EXPONENT)
    place = 10.0 ** exponent.double()
    # The sign stands before the first token, and counts for all of the number.
    is_negative = _add_over_number(minus, number) > 0
    place = place.where(~is_negative, -place)
    is_whole = _add_over_number(~in_vocabulary, number) == 0

    # A number with no token in V_num is none here, so they are counted anew.
    kept = number[in_vocabulary]
    _, numbers = torch.unique_consecutive(kept, return_inverse=True)
    return numbers, place[in_vocabulary], is_whole[in_vocabulary]


def _find_numbers(
    runs: tuple[Tensor, Tensor, Tensor], joined: Tensor, leading: Tensor, apart: Tensor
) -> tuple[Tensor, Tensor]:
    """(number, power of ten that its last digit counts) of the digit tokens: [D] each.

    runs: row, position and digits, see `number_spans`, which knows no points.
    """
    number, exponent = number_spans(*runs, joined, apart)
    has_point = joined | leading
    # Most batches have no decimals: their first runs are their numbers.
    if not has_point.any():
        return number, exponent

    # Only once the runs are joined is it known which numbers have several points.
    has_point &= _add_over_number(has_point, number) == 1
    number, exponent = number_spans(*runs, joined & has_point, apart)
    # Exponents count from the last digit; the point moves all of a number's alike.
    decimals = (exponent + runs[2]).where(has_point, 0)
    return number, exponent - _add_over_number(decimals, number)


def _add_over_number(counts: Tensor, number: Tensor) -> Tensor:
    """The sum of counts [D] over the number of each token: [D] int64."""
    totals = torch.zeros_like(number).index_add(0, number, counts.long())
    return totals[number]


@dataclass(frozen=True)
class _Text:
    """The supervised tokens, [T] each."""

    label: Tensor
    row: Tensor
    position: Tensor

    def has(self, index: Tensor, step: int) -> Tensor:
        """Whether all of the last `step` tokens before these stand right before them: bool."""
        other = (index - step).clamp(min=0)
        same_row = self.row[other] == self.row[index]
        return same_row & (self.position[other] == self.position[index] - step)

    def is_one_of(self, tokens: tuple[int, ...], index: Tensor) -> Tensor:
        """Whether the tokens at these places, from 0 on, are among some: bool."""
        label = self.label[index.clamp(min=0)]
        return torch.isin(label, torch.tensor(tokens, dtype=label.dtype))


def _find_points(
    vocabulary: NumericVocabulary, text: _Text, spelled: Tensor, index: Tensor
) -> tuple[Tensor, Tensor]:
    """Which digit tokens [D] go on the number before their point, and which begin one with it:
    [D] bool each. spelled: [T], the digits of each token."""
    two_before = (index - 2).clamp(min=0)
    has_before = text.has(index, 2)
    is_fraction = text.has(index, 1) & (spelled[index] > 0)
    is_fraction &= ~text.is_one_of(vocabulary.opens, index)
    after_point = text.is_one_of(vocabulary.points, index - 1)
    after_point &= is_fraction

    # With digits before the point it goes on their number.
    after_digits = has_before & (spelled[two_before] > 0)
    after_digits &= ~text.is_one_of(vocabulary.closes, two_before)
    joined = after_point & after_digits

    # With a sign, a blank or nothing before the point a number begins with it.
    after_lead = text.is_one_of(vocabulary.leads, two_before)
    after_lead |= ~has_before
    after_blank = text.is_one_of(vocabulary.blank_points, index - 1)
    leading = after_point & after_lead
    leading |= is_fraction & after_blank
    return joined, leading


def _find_signs(
    vocabulary: NumericVocabulary, text: _Text, is_numeric: Tensor, first: Tensor
) -> Tensor:
    """Which of these tokens [D], the first of a number, stand right after its minus sign, which
    does not itself follow a numeric token: [D] bool."""
    minus = text.has(first, 1) & text.is_one_of(vocabulary.minuses, first - 1)
    blank = text.is_one_of(vocabulary.opens + vocabulary.blank_points, first)
    between_numbers = text.has(first, 2) & is_numeric[(first - 2).clamp(min=0)]
    return minus & ~blank & ~between_numbers
