"""The text of a completion, and the numbers that are written in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

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
_ENDS = re.compile(
    r"</s>|<eos>|<end_of_turn>|<\|(?:im_end|end|endoftext|end_of_text|eot_id|return)\|>"
)
_SEEN_ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2007\u202f", " "),  # spaces that do not break a line
        **dict.fromkeys("\ufeff\u200b\u2060"),  # the byte-order mark and others without width
    }
)


def plain_text(completion: str) -> str:
    r"""The text of a completion up to its end-of-text token, without space around it.

    A non-breaking space (U+00A0, U+2007, U+202F) becomes a space, `\r\n` and `\r` become `\n`, and
    characters without width, such as the byte-order mark, go. Digits stay as they are, and a space
    between them separates two numbers, whatever its kind: `1 234` is not 1234.
    """
    text = _ENDS.split(completion, maxsplit=1)[0].translate(_SEEN_ALIKE)
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


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
    count (`10km`). Versions (`3.11.2`) and dates with slashes are not numbers.
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
