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
from typing import Any

SEPARATORS = {",": ",", ";": ";", "|": "|", "tab": "\t"}
"""What parts the fields of a line, by its name in a parameter."""
_LONGEST_FIELD = 2**31 - 1


def decode_text(raw: bytes, encoding: str | None = None) -> str:
    """The text of a file: UTF-8, or UTF-16 where it begins with its mark, unless an encoding is
    named. Raises ValueError for another one."""
    is_utf_16 = raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    codec = encoding or ("utf-16" if is_utf_16 else "utf-8")
    try:
        return raw.decode(codec).removeprefix("\ufeff")
    except LookupError as error:
        raise ValueError(f"{codec} is no encoding") from error
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"line {line} is not {codec.upper()}: name its encoding, as in table[encoding=cp1252]"
        ) from error


def read_csv(text: str, default: str, separator: str | None = None, *, strict: bool = False) -> Any:
    """The rows of a CSV file, whose cells are texts.

    default: what parts fields; separator: what does, if it is named. strict: find it in the header,
    and refuse a field with line breaks and separators, which an open quote makes, too.
    Raises ValueError for a file that could be read in two ways.
    """
    import pandas as pd

    parts = separator or (_find_separator(text, default) if strict else default)
    _require_whole_rows(text, parts, strict=strict)
    how: Any = {"dtype": str, "keep_default_na": False, "index_col": False}
    return pd.read_csv(StringIO(text), sep=parts, **how).to_dict("records")


def _find_separator(text: str, default: str) -> str:
    """What parts the names of the header: the default, or the one other sign that it has."""
    header = next(filter(str.strip, text.splitlines()), "")
    others = [sign for sign in SEPARATORS.values() if sign in header]
    return others[0] if default not in header and len(others) == 1 else default


def _require_whole_rows(text: str, separator: str, *, strict: bool) -> None:
    """Raise ValueError for the first line whose fields are not those of the header."""
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    names: Sequence[str] = ()
    first_line = 1
    try:
        for fields in reader:
            if fields and not names:
                names = fields
                require_different(names)
            elif problem := _describe_problem(fields, names, separator, strict=strict):
                raise ValueError(f"line {first_line}: {problem}")
            first_line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"line {first_line}: text follows a closing quote, or a quote is not closed; a quote "
            'within quotes is written twice (""), not as \\"'
        ) from error


def _describe_problem(
    fields: Sequence[str], names: Sequence[str], separator: str, *, strict: bool
) -> str | None:
    """What is wrong with a row. An empty line is no row."""
    if fields and len(fields) != len(names):
        plural = "s" * (len(fields) > 1)
        return f"it has {len(fields)} field{plural}, and the header has {len(names)}"
    for field in fields if strict else ():
        if separator in field and ("\n" in field or "\r" in field):
            return f"a quoted field holds line breaks and {separator!r}, as after an open quote"
    return None


def require_different(names: Sequence[str]) -> None:
    """Raise ValueError where two columns have one name, blanks around it apart."""
    counts = Counter(filter(None, map(str.strip, names)))
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(f"two columns are called '{repeated[0]}'")
