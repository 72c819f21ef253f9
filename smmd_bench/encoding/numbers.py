"""The numeric vocabulary of a tokenizer (app. alg of the paper), and numbers written in text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args
from weakref import WeakKeyDictionary

from ..errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

Rule = Literal["integer", "float"]
_CONTEXTS = ("", "=", " ", "a")
_BYTE_TOKEN = re.compile(r"<0x[0-9A-Fa-f]{2}>")


@dataclass(frozen=True, slots=True, eq=False)
class NumericVocabulary:
    """V_num: the tokens that are numbers, with the bijection pi to 0..N-1 in order of value.

    token_ids: [N] int64. values: [N] float64, ascending; equal values are in order of token id.
    rule: how the tokens were chosen, see `numeric_vocabulary`.
    """

    token_ids: Tensor
    values: Tensor
    rule: str

    def __len__(self) -> int:
        return int(self.token_ids.numel())

    def index_of(self, labels: Tensor) -> Tensor:
        """pi(y) for vocabulary ids of any shape: index into V_num, -1 outside it.

        Any integer is allowed: -100, and ids beyond the tokenizer (padded vocabularies).
        """
        import torch

        ids, order = self.token_ids.to(labels.device).sort()  # [N]
        place = torch.searchsorted(ids, labels.contiguous()).clamp(max=len(self) - 1)
        return order[place].where(ids[place] == labels, -1)


def numeric_vocabulary(tokenizer: Any, rule: Rule = "integer") -> NumericVocabulary:
    """The numeric vocabulary of a transformers tokenizer, or of anything with its three methods:
    `len()`, `encode(text, add_special_tokens=False)` and `decode(ids)`.

    rule `integer`: the tokens that are spelled exactly `str(n)` for an n in 0..999, of the lengths
    that the tokenizer really emits. It emits a length if it ends some number of that many digits,
    alone or after "=", a space or a letter, with the token of the whole number. (After something,
    because sentencepiece marks what opens a text, and some tokenizers have " 7" besides "7". By
    length, because the merges of a tokenizer with groups of three digits may still spell single
    numbers otherwise: 110 as 1, 10.) So spellings with a space marker ("Ġ7", "▁7"), byte tokens
    ("<0x37>"), and "12" in a vocabulary whose tokenizer splits digits are out. N = 10 where numbers
    are split into digits, 1000 where they are split into groups of three.

    rule `float`: Algorithm 1 of the paper (alg:vnum) made safe: every token whose decoded text is
    ASCII without an underscore and that `float` reads as a finite number. That leaves out "\u0663"
    and "1_0" and "inf", but keeps "007", "1e5" and " 7". Byte tokens are out.

    Raises UserError if no token is numeric.
    """
    import torch

    if rule not in get_args(Rule):
        raise UserError(f"Unknown rule '{rule}' of the numeric vocabulary: known: float, integer.")
    found = _known_integer_tokens(tokenizer) if rule == "integer" else _float_tokens(tokenizer)
    if not found:
        name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
        other = "float" if rule == "integer" else "integer"
        raise UserError(
            f"The tokenizer {name} has no numeric token by the rule '{rule}': try the rule "
            f"'{other}', or a model whose tokenizer has tokens for digits."
        )
    pairs = sorted((value, token_id) for token_id, value in found.items())
    return NumericVocabulary(
        token_ids=torch.tensor([token_id for _, token_id in pairs], dtype=torch.int64),
        values=torch.tensor([value for value, _ in pairs], dtype=torch.float64),
        rule=rule,
    )


_known: WeakKeyDictionary[Any, tuple[int, dict[int, float]]] = WeakKeyDictionary()


def _known_integer_tokens(tokenizer: Any) -> dict[int, float]:
    """`_integer_tokens`, looked for once: a run asks many times, and each takes 0.1 to 0.2 s."""
    size, found = _known.get(tokenizer, (-1, {}))
    if size != len(tokenizer):
        found = _integer_tokens(tokenizer)
        _known[tokenizer] = (len(tokenizer), found)
    return found


def _integer_tokens(tokenizer: Any) -> dict[int, float]:
    emitted = {}
    for number in range(1000):
        for context in _CONTEXTS:
            ids = tokenizer.encode(context + str(number), add_special_tokens=False)
            if ids and _spelling(tokenizer, int(ids[-1])) == str(number):
                emitted[number] = int(ids[-1])
                break
    lengths = {len(str(number)) for number in emitted}
    spelled = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else {}
    for number in range(1000):
        if number not in emitted and len(str(number)) in lengths and str(number) in spelled:
            emitted[number] = int(spelled[str(number)])
    return {token_id: float(number) for number, token_id in emitted.items()}


def _float_tokens(tokenizer: Any) -> dict[int, float]:
    found = {}
    for token_id in range(len(tokenizer)):
        spelling = _spelling(tokenizer, token_id)
        if _BYTE_TOKEN.fullmatch(spelling) or not re.search("[0-9]", spelling):
            continue
        text = tokenizer.decode([token_id])
        if text.isascii() and "_" not in text:
            try:
                value = float(text)
            except ValueError:
                continue
            if math.isfinite(value):
                found[token_id] = value
    return found


def _spelling(tokenizer: Any, token_id: int) -> str:
    """The token as the vocabulary has it, markers and all; decoded where that cannot be had."""
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        return str(tokenizer.convert_ids_to_tokens(token_id))
    return str(tokenizer.decode([token_id]))


# How a number is written. Digits are ASCII. Every repetition is possessive or bounded, so that
# reading takes linear time.
_SIGN = "[-+\u2212]"
_WHOLE = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3}){1,40}(?!,?[0-9])|[0-9]++)"
_DECIMAL = rf"(?:{_WHOLE}(?:\.[0-9]*+)?|(?<![0-9A-Za-z)])\.[0-9]++)(?:[eE]{_SIGN}?[0-9]++)?"
_FRACTION = rf"""
    (?:(?<![-A-Za-z0-9)\]}}%])(?P<sign>{_SIGN}))?+ (?:[$€£¥](?P<inner_sign>{_SIGN})?+)?+
    (?: \\[cdt]?frac\{{(?P<over>{_SIGN}?{_DECIMAL})\}}\{{(?P<under>{_SIGN}?{_DECIMAL})\}}
      | (?<![A-Za-z0-9])(?P<numerator>{_DECIMAL})(?:[ ]?/[ ]?(?P<denominator>{_SIGN}?{_DECIMAL}))? )
"""
_NO_NUMBER = rf"""
    (?<![A-Za-z_])[A-Za-z][A-Za-z_]*+[0-9][0-9A-Za-z_]*+(?:\.[0-9]++)*+  # an identifier: x5, GPT4.1
    | [0-9]++(?:\.[0-9]++){{2,}}+                                       # a version: 3.11.2
    | [0-9]++(?:[ ]?/[ ]?[0-9]++){{2,}}+                                # a date: 24/12/2024
    | (?:/[ ]?|\}}\{{){_SIGN}?[0-9][0-9.,]*+                            # a denominator alone
"""
_ONE = re.compile(rf"{_FRACTION} [ ]?\\?%?", re.VERBOSE)
_NEXT = re.compile(rf"(?P<none>{_NO_NUMBER})|{_FRACTION}", re.VERBOSE)
_LONGEST = 400


def parse_number(text: str) -> Fraction | None:
    """The number that `text` is, surrounding space apart; None if it is not one number.

    Read are `-3/2`, `1,234`, `$18.00`, `18.`, `.5`, `+7`, `1.8e1`, the minus sign U+2212, LaTeX's
    `\\frac{3}{4}`, and a percentage as the number before its sign. A comma counts only between
    proper groups of three. Not read are digits that are not ASCII, mixed numbers such as `1 1/2`, a
    division by zero, and more than 400 digits or an exponent beyond 400 either way.
    """
    match = _ONE.fullmatch(text.strip())
    return _value(match) if match else None


def first_number(text: str) -> Fraction | None:
    """The first number in running text; see `last_number`."""
    return _first_value(_NEXT.finditer(text))


def last_number(text: str) -> Fraction | None:
    """The last number in running text, None if there is none.

    A fraction is one number, and a denominator alone never is one: `x/4` has none. `1,234` is one
    number, `1,23` two. A hyphen is a sign unless it follows a letter, a digit, a closing bracket, a
    percent sign or another hyphen, or is followed by a space: `x-5` and `3-5` end in 5, `= -5` in
    -5. Digits after an ASCII letter belong to an identifier (`x5`, `GPT4.1`); those before one
    count (`10km`). Versions (`3.11.2`) and dates with slashes are no numbers.
    """
    return _first_value(reversed(list(_NEXT.finditer(text))))


def _first_value(matches: Iterable[re.Match[str]]) -> Fraction | None:
    values = (_value(match) for match in matches if not match["none"])
    return next((value for value in values if value is not None), None)


def _value(match: re.Match[str]) -> Fraction | None:
    """The exact value of a match of _FRACTION; None out of bounds or over zero."""
    over = _decimal(match["over"] or match["numerator"])
    under = _decimal(match["under"] or match["denominator"] or "1")
    if over is None or not under or (match["sign"] and match["inner_sign"]):
        return None
    negative = (match["sign"] or match["inner_sign"] or "+") != "+"
    return -over / under if negative else over / under


def _decimal(text: str) -> Fraction | None:
    """`-1,234.5e6` exactly; None out of bounds."""
    plain = text.replace(",", "").replace("\u2212", "-").lower()
    mantissa, _, exponent = plain.partition("e")
    power = exponent.lstrip("+-").lstrip("0") or "0"
    if len(mantissa) > _LONGEST or len(power) > 3 or int(power) > _LONGEST:
        return None
    return Fraction(mantissa) * Fraction(10) ** (-int(power) if "-" in exponent else int(power))
