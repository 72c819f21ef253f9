"""Rows of CSV and its like: read by pandas, once the text is known to mean what pandas reads.

A quote that is never closed, or that Spark escapes by a backslash, moves the ends of fields without
an error, and a line with too few fields loses an answer. Such a file is refused with the line.
"""

from __future__ import annotations

import csv
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from ..errors import UserError

SEPARATORS = {",": ",", ";": ";", "|": "|", "tab": "\t"}
"""What parts the fields of a line, by its name in a parameter."""
_LONGEST_FIELD = 2**31 - 1


def decode_text(file: Path, raw: bytes, encoding: str | None = None) -> str:
    """The text of a file: UTF-8, or UTF-16 where it begins with its mark, unless an encoding is
    named. Raises UserError for another one."""
    is_utf_16 = raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    codec = encoding or ("utf-16" if is_utf_16 else "utf-8")
    try:
        text = raw.decode(codec)
    except LookupError:
        raise UserError(f"{codec} is no encoding: name one such as encoding=cp1252.") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{file}, line {line}: this is not {codec.upper()}: save the file as UTF-8, or name "
            "its encoding, as in table[encoding=cp1252]."
        ) from error
    return text.removeprefix("\ufeff")


def read_csv(
    file: Path, text: str, default: str, separator: str | None = None, *, strict: bool = False
) -> Any:
    """The rows of a CSV file, whose cells are texts.

    default: what parts fields where the header has it; separator: what parts them in any case.
    strict: refuse a field with line breaks and separators, which an open quote makes, too.
    Raises UserError for a file that could be read in two ways.
    """
    import pandas as pd

    parts = separator or _find_separator(file, text, default)
    _require_whole_rows(file, text, parts, strict=strict)
    how: Any = {"dtype": str, "keep_default_na": False, "index_col": False}
    return pd.read_csv(StringIO(text), sep=parts, **how).to_dict("records")


def _find_separator(file: Path, text: str, default: str) -> str:
    """What parts the names of the header: the default, or the one other sign that it has."""
    header = next(filter(str.strip, text.splitlines()), "")
    if default in header:
        return default
    others = [sign for sign in SEPARATORS.values() if sign in header]
    return others[0] if len(others) == 1 else default


def _require_whole_rows(file: Path, text: str, separator: str, *, strict: bool) -> None:
    """Raise UserError for the first line whose fields are not those of the header."""
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    names: Sequence[str] = ()
    first_line = 1
    try:
        for fields in reader:
            if fields and not names:
                names = fields
                require_different(file, names)
            elif problem := _describe_problem(fields, names, separator, strict=strict):
                raise UserError(f"{file}, line {first_line}: {problem}.")
            first_line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{file}, line {first_line}: text follows a closing quote, or a quote is not closed: "
            'write a quote within a quoted field twice (""), not as \\", and close each one.'
        ) from error


def _describe_problem(
    fields: Sequence[str], names: Sequence[str], separator: str, *, strict: bool
) -> str | None:
    """What is wrong with a row, and the remedy. An empty line is no row."""
    if fields and len(fields) != len(names):
        plural = "s" * (len(fields) > 1)
        counts = f"it has {len(fields)} field{plural}, and the header has {len(names)}"
        return f"{counts}: put a field with {separator!r}, a quote or a line break in quotes"
    for field in fields if strict else ():
        if separator in field and ("\n" in field or "\r" in field):
            return (
                f"a quoted field holds line breaks and {separator!r}, as after an open quote: "
                "close the quote, or save the file as JSON lines"
            )
    return None


def require_different(file: Path, names: Sequence[str]) -> None:
    """Raise UserError where two columns have one name, blanks around it apart."""
    counts = Counter(filter(None, map(str.strip, names)))
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise UserError(f"{file} has two columns '{repeated[0]}': give each a name of its own.")
