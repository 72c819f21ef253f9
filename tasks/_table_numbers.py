"""Answers of a file as numbers: which sign is the decimal one, and what no rule may guess.

`5,860` is 5860 in English and 5.86 in German, and nothing in the cell says which. So a column in
which every comma could be either is refused, as are numbers that are written in another way than
`decimal` and `thousands` say, and numbers with words around them, which would be texts in silence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from smmd_bench.contracts import UserError, parse_number, plain_text

from ._table_rows import Row, refuse_rows

# Typeset numbers part thousands by these; `thousands` names the plain signs.
_NARROW_SPACES = str.maketrans("\u00a0\u2007\u2009\u202f\u2019", "    '")
_COULD_BE_EITHER = re.compile(r"(?<![\d.,])[1-9]\d{0,2},\d{3}(?![\d.,])")
_DECIMAL_COMMA = re.compile(r"\d,(?!\d{3}(?!\d))\d|\.\d{3},\d|(?<![\d.,])0\d*,\d")
_POINT_IS_DECIMAL = re.compile(
    r"\.(?!\d{3}(?!\d))\d|(?<![\d.,])0\.\d|\d{4}\.\d|,\d{3}[.,]\d", re.ASCII
)
"""What shows that a point is the decimal sign, or a comma parts thousands: `1.5`, `1,234,567`."""
_SIGNS = re.compile(r"[A-Z]{0,3}[$€£¥₹]|%")
_NUMBER = r"[-+−]?\d+(?:[.,'’\s]\d+)*"
_IS_NUMBER = re.compile(rf"(?:{_SIGNS.pattern})?\s*{_NUMBER}\s*%?")
_AMONG_WORDS = re.compile(rf"([^\d,]{{0,40}}?)({_NUMBER})(\D{{0,40}})")
_IDENTIFIER = re.compile(r"[^\W\d_]-?$")
"""What stands before the number of a name, such as x5 or GPT-4."""


@dataclass(frozen=True)
class Spelling:
    """How numbers are written: the decimal sign, and what parts thousands."""

    decimal: str = "."
    thousands: str = ","

    def read(self, text: str) -> Fraction | None:
        """The number that a text is; None: it is not one number."""
        if self == Spelling():
            return parse_number(text)

        line = text.strip().translate(_NARROW_SPACES)
        between_groups = rf"(?<=\d){re.escape(self.thousands)}(?=\d{{3}}(?!\d))"
        line = re.sub(between_groups, "\0", line)
        # A point or comma that neither sign is makes a number unreadable.
        signs = {ord("."): "_", ord(","): "_", ord(self.decimal): ".", 0: ","}
        return parse_number(line.translate(signs))

    def read_completion(self, completion: str) -> Fraction | None:
        """The number that the first line is, without end-of-text tokens and their like."""
        if self != Spelling():
            # Which would become commas between thousands.
            completion = completion.translate(_NARROW_SPACES)
        return self.read(plain_text(completion).partition("\n")[0])


def spelling_of(decimal: str | None, thousands: str | None) -> Spelling:
    """Each sign from the other where only one is named. Raises ValueError for one sign twice."""
    if decimal is None:
        decimal = "," if thousands == "." else "."
    if thousands is None:
        thousands = "." if decimal == "," else ","
    if decimal == thousands:
        raise ValueError(f"{decimal!r} cannot be the decimal sign and part thousands")
    return Spelling(decimal, thousands)


def read_numbers(
    rows: Sequence[Row],
    column: str,
    answers: str,
    decimal: str | None,
    thousands: str | None,
) -> dict[str, Fraction | None] | None:
    """The number of each row by uid, None where a row has none; None where answers are texts.

    column: what errors call the target; answers: auto, numbers or text; decimal and thousands: the
    signs that are named.
    Raises UserError for what could be read in two ways, and where most are numbers and some not.
    """
    if answers == "text":
        return None
    spelling = spelling_of(decimal, thousands)
    numbers = {row.uid: spelling.read(row.target) for row in rows}
    filled = [row for row in rows if row.target]
    unread = [row for row in filled if answers == "auto" and numbers[row.uid] is None]

    words_by_row = _find_words(unread)

    # Most are texts: a column of names with a few numbers is no mistake.
    if unread and 2 * (len(filled) - len(unread) + len(words_by_row)) <= len(filled):
        return None

    # Signs that the user names settle how a comma is read.
    if not (decimal or thousands):
        _require_one_reading(filled, column)
    if words_by_row:
        words = ", ".join(map(repr, dict.fromkeys(words_by_row.values())))
        raise UserError(
            f"{_describe(next(iter(words_by_row)), column)}, which is no number as it stands, as "
            f"in {len(words_by_row):,} of {len(rows):,} rows ({words:.60}): leave the number alone "
            'in the column, name its signs, as in table[decimal=",",thousands=" "], or use '
            "table[answers=text]."
        )
    mistake = "its {} is {!r:.40}, and most others are numbers"
    mistakes = {row: mistake.format(column, row.target) for row in unread}
    refuse_rows(mistakes, "use table[answers=text]")
    _require_one_sign(filled, column)
    return numbers


def _describe(row: Row, column: str) -> str:
    """A row, and what its answer is, as the beginning of a sentence."""
    return f"{row.place}: its {column} is {row.target!r:.60}"


def _require_one_reading(rows: Sequence[Row], column: str) -> None:
    """Raise UserError for commas that no parameter explains: decimal ones, or which could be."""
    could_be_either = [row for row in rows if _COULD_BE_EITHER.search(row.target)]
    for row in rows:
        if _IS_NUMBER.fullmatch(row.target) and _DECIMAL_COMMA.search(row.target):
            raise UserError(
                f"{_describe(row, column)}, with a decimal comma: say so with "
                'table[decimal=","], or use table[answers=text].'
            )
    if could_be_either and not any(
        _POINT_IS_DECIMAL.search(row.target) for row in rows
    ):
        row = could_be_either[0]
        readings = row.target.replace(",", ""), row.target.replace(",", ".")
        raise UserError(
            f"{_describe(row, column)}, which is {' or '.join(readings)}, and no other row says "
            'which: say it with table[decimal="."] or table[decimal=","].'
        )


def _require_one_sign(rows: Sequence[Row], column: str) -> None:
    """Raise UserError where some numbers have a percent or currency sign that others lack: read as
    numbers, 5% and 5 would be equal."""
    row_by_signs = {tuple(_SIGNS.findall(row.target)): row for row in rows}
    if len(row_by_signs) > 1:
        row, other = [*row_by_signs.values()][:2]
        raise UserError(
            f"{_describe(row, column)}, and that of row {other.number} {other.target!r:.60}: write "
            "the same sign in all, or use table[answers=text]."
        )


def _find_words(rows: Sequence[Row]) -> dict[Row, str]:
    """The words around the one number of each target: `…` for none, and as in `… km` where two rows
    have the same. Names such as GPT-4 are left out."""
    words = {}
    for row in rows:
        match = _AMONG_WORDS.fullmatch(row.target)
        # The number of a name counts nothing: GPT-4 is not 4.
        if match and not _IDENTIFIER.search(match[1]):
            words[row] = f"{match[1]}…{match[3]}"
    counts = Counter(words.values())
    return {row: text for row, text in words.items() if text == "…" or counts[text] > 1}
