r"""The numbers that are written in a text.

A text is first rewritten, so that a number has one spelling: `9{,}500` becomes `9,500`, `–5` `-5`,
`2½` `2 1/2`, `1.5 \times 10^{3}` `1.5e3`. Then numbers are matched, each with what adjoins it: a
number whose neighbour cannot be read, as in `3:30` or `1.234,56`, is no number, and neither is any
piece of it. Every repetition is possessive or bounded, so that reading takes linear time.
"""

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from unicodedata import normalize

from .texts import remove_invisible

_WHOLE = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3}){1,40}(?!,?[0-9])|[0-9]++)"
_DECIMAL = rf"(?:{_WHOLE}(?:\.[0-9]*+)?|(?<![0-9A-Za-z)])(?<!\.\.)\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
_CURRENCY = r"(?:[A-Z]{0,3}[$€£¥₹][ ]?)"
_NUMBER = rf"""
    (?:(?P<sign>(?:(?<=[=(:\#])|(?<=[=(:\#][ ]))[-+][ ]?|(?<![-+A-Za-z0-9)\]}}%])[-+])
      (?:\\boxed\{{|\{{|\*\*)?+)?+
    (?:{_CURRENCY}(?P<inner_sign>[-+])?+)?+ (?<![A-Za-z\d√±])
    (?:(?P<whole>{_WHOLE})[ ]{{1,2}}(?=[0-9]{{1,9}}/[0-9]{{1,9}}(?![0-9/])))?+
    (?P<over>{_DECIMAL})(?:[ ]?/[ ]?(?P<under>[-+]?{_DECIMAL}))?
"""
_OTHER = (
    r"(?<![A-Za-z_])[A-Za-z][A-Za-z_]*+[-+]?[0-9][0-9A-Za-z_]*+"
    r"|(?:/[ ]?|\}\{|\^\{?|_\{)[-+]?\d++"
)
"""An identifier such as x5 or GPT-4; what is under a fraction, raised or lowered."""
_UNREADABLE = r"""
    (?:\\[cdt]?frac[ ]?\{?|\\sqrt(?:\[.\])?\{?|-\(|(?<![-+])[-+]{2,}+|(?<=[0-9)\]}%])[-+*])
    [-+]?[$€£¥₹]?\d++
"""
"""What begins a fraction of other things than numbers, a root, -(2), --5, (2)+5."""
_ADJOINING = r"""
    (?:[A-Za-z%€£¥°]*+(?:[ ]?[/^][ ]?|[-+*/^:.,'’_±√—~…：，．／～]{1,3}|\\[a-z]++\{?)?+
      [-+]?[$€£¥₹]?\d++)++
    | [\^√π] | \\(?:pi|sqrt|[cdt]?frac)(?![A-Za-z]) | (?:bn|mn|[kKMB])(?![A-Za-z0-9])  # 5k is not 5
"""
"""What makes a number before it unreadable."""
_NEXT = re.compile(
    rf"(?:(?P<other>{_OTHER})|{_UNREADABLE}|{_NUMBER})(?P<adjoining>{_ADJOINING})?+",
    re.VERBOSE,
)
_LONGEST = 400

_PART = rf"(?:\{{([-+]?{_DECIMAL})\}}|([0-9]))"
_FRAC = rf"\\[cdt]?frac[ ]?{_PART}{_PART}"
_BLANKS = r"""(?x)
    (?<![0-9A-Za-z_.,]) (?<![0-9][ ]) (?<![A-Za-z_][-+])  # not in x5 100, 1.5 200 or 2020 100 200
    [1-9][0-9]{0,2} (?:[ ][0-9]{3}(?![0-9]))++
    (?P<broken>[ ][0-9]++(?![0-9/]))?+ (?![ ]?/[ ]?[0-9])  # 5 100/200 is a mixed number
"""
"""Digits that blanks group by three, as in 10 000; `broken`: by other groups, too."""
_SPELLINGS: dict[str, str | Callable[[re.Match[str]], str]] = {
    rf"(?<=[0-9A-Za-z}}])(?=[¼-¾⅐-⅞]|{_FRAC})": " ",  # 2½ is 2 ½
    "[¼-¾⅐-⅞]|([⁰¹²³⁴-⁹⁺⁻]++)": lambda match: (
        "^" * bool(match[1]) + normalize("NFKC", match[0])
    ),
    "[\u2010-\u2013\u2212\ufe63\uff0d]": "-",
    "[\u2044\u2215]": "/",
    r"[\u00d7\u2715\u22c5\u00b7]|\\(?:times|cdot)(?![A-Za-z])": "*",
    r"\\([$%])": r"\1",
    _BLANKS: lambda match: match[0].replace(" ", "'" if match["broken"] else ","),
    r"(?<=[0-9])[ ]{1,2}(?=0[0-9])": "'",  # 10 00 is no number, and not two
    r"(?<=[0-9])(?:\{\\?([,.])\}|,?\\[,!;: ])(?=[0-9])": lambda match: match[1] or ",",
    r"(?:(?<=[0-9.])([ ]?[*xX][ ]?)|(?<![\w.,^]))10[ ]?(?:\^|\*\*)[ ]?(?:\{([-+]?[0-9]{1,9})\}|"
    r"([-+]?[0-9]++))": lambda match: f"{'' if match[1] else 1}e{match[2] or match[3]}",
    _FRAC: lambda match: f"{match[1] or match[2]}/{match[3] or match[4]}",
}
_REWRITTEN = [(re.compile(pattern), written) for pattern, written in _SPELLINGS.items()]


def parse_number(text: str) -> Fraction | None:
    """The number that `text` is, surrounding space apart; None if it is not one number.

    Read are `-3/2`, `1,234`, `$18.00`, `18.`, `.5`, `+7`, `1.8e1`, `1.5 × 10^3`, mixed numbers such
    as `5 1/2` and `2½`, `10 000`, any minus sign, LaTeX's `\\frac{3}{4}` and `9{,}500`, and a
    percentage as the number before its sign. Not read are digits that are not ASCII, and beyond
    400 digits.
    """
    # Most are plain integers, in which nothing is to be spelled anew.
    if text.isascii() and text.isdecimal() and len(text) <= _LONGEST:
        return Fraction(int(text))
    match = _NEXT.fullmatch(_rewritten(text).strip().removesuffix("%").rstrip(" "))
    return _value(match) if match else None


def first_number(text: str) -> Fraction | None:
    """The first number in running text, None if it cannot be read; see `last_number`."""
    return next(map(_value, _numbers(text)), None)


def last_number(text: str) -> Fraction | None:
    """The last number in running text, None if there is none or it cannot be read.

    A fraction or mixed number is one number (`5 1/2`), a denominator alone none (`x/4`). A hyphen
    is a sign unless it follows a letter, digit, closing bracket, percent sign or hyphen; where a
    space follows, after `=`, `(`, `:` or `#` alone: `= - 5` ends in -5, `7 - 5` in 5. `x5` is an
    identifier, `10km` a number, `5k` none. `10 000` is one number, and `10 00` none. What adjoins
    a number can make it unreadable: in times (`3:30`), ranges and sums (`3-5`, `2+3`), powers
    (`5^2`), versions, dates, and `1,23`.
    """
    return next(map(_value, reversed(list(_numbers(text)))), None)


def _numbers(text: str) -> Iterator[re.Match[str]]:
    """What is written as a number, whether it can be read or not."""
    return (match for match in _NEXT.finditer(_rewritten(text)) if not match["other"])


def _rewritten(text: str) -> str:
    """The text with one spelling for each number."""
    text = remove_invisible(text)
    for pattern, written in _REWRITTEN:
        text = pattern.sub(written, text)
    return text


def _value(match: re.Match[str]) -> Fraction | None:
    """The exact value of a match of _NEXT; None where it is no number."""
    if (
        not match["over"]
        or match["adjoining"]
        or (match["sign"] and match["inner_sign"])
    ):
        return None
    integer = _decimal(match["whole"] or "0")
    over = _decimal(match["over"])
    under = _decimal(match["under"] or "1")
    if integer is None or over is None or not under:
        return None

    # `2 3/4` is a mixed number; `2 7/4` and `2 3/0.5` are two numbers.
    is_proper = over < under and under.denominator == 1
    if match["whole"] and not is_proper:
        return None
    value = integer + over / under
    is_negative = "-" in (match["sign"] or "") + (match["inner_sign"] or "")
    return -value if is_negative else value


def _decimal(text: str) -> Fraction | None:
    """`-1,234.5e6` exactly; None out of bounds."""
    mantissa, _, exponent = text.replace(",", "").lower().partition("e")
    power = exponent.lstrip("+-").lstrip("0") or "0"
    # A short text such as 1e999999999 would fill the memory.
    if len(mantissa) > _LONGEST or len(power) > 3 or int(power) > _LONGEST:
        return None
    sign = -1 if "-" in exponent else 1
    return Fraction(mantissa) * Fraction(10) ** (sign * int(power))
