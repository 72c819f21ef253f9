"""Rows of JSON, CSV and Parquet, and the texts that prompts and targets are made of."""

from __future__ import annotations

import csv
import gzip
import json
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError, did_you_mean
from .files import has_lone_surrogate

SEPARATORS = {",": ",", ";": ";", "|": "|", "tab": "\t"}
"""What parts the fields of a line, by its name in a parameter."""
_LONGEST_FIELD = 2**31 - 1


def read_texts(file: Path, columns: Sequence[str], **how: Any) -> list[dict[str, str]]:
    """Read these columns of the rows of a file, as texts; see `spell_rows`. `how` is of
    `read_rows`."""
    return spell_rows(file, read_named_rows(file, **how), columns)


def read_named_rows(file: Path, **how: Any) -> list[dict[str, Any]]:
    """Read the rows of `read_rows`, each with the columns of all, whose names have no blanks
    around."""
    rows = read_rows(file, strict=True, **how)
    # JSON lines leave out what is null: another row tells that there is a column.
    names = {name: str(name).strip() for row in rows for name in row}
    return [{name: row.get(column) for column, name in names.items()} for row in rows]


def spell_rows(
    file: Path, rows: Sequence[Mapping[str, Any]], columns: Iterable[str]
) -> list[dict[str, str]]:
    """Spell these columns without blanks around, an absent value as an empty one. Raises
    UserError for a column that the file lacks, and for what is no text, such as a list."""
    names = [*dict.fromkeys(columns)]
    for name in names:
        if name not in rows[0]:
            raise UserError(
                f"{file} has no column '{name}': {did_you_mean(name, rows[0])}"
            )

    texts = []
    for number, row in enumerate(rows, start=1):
        for name in names:
            value = row[name]
            if isinstance(value, list | dict | bytes):
                raise UserError(
                    f"{file}, row {number}: its {name} is a {type(value).__name__}: name a column "
                    "of texts or numbers."
                )
        texts.append({name: spell_value(row[name]) for name in names})

    return texts


def spell_value(value: Any) -> str:
    """Spell a value. A number has the fewest digits that give it in its type, and no exponent:
    18.0 is `18`, 2.5e-05 `0.000025`, and 5.2 is `5.2` in 32 bits, too."""
    if value is None or value != value:  # NaN, and NaT of a date
        return ""
    if isinstance(value, float | np.floating):
        return np.format_float_positional(value, trim="-")
    return format(value, "f") if isinstance(value, Decimal) else str(value).strip()


def read_rows(
    file: Path,
    columns: Sequence[str] = (),
    parse: Callable[[Path], Any] | None = None,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    strict: bool = False,
) -> list[dict[str, Any]]:
    """Read the rows of JSON lines, a JSON list (also with .gz), CSV or Parquet, all of which have
    the columns; see `read_csv` for the separator and what is strict.

    parse: makes the rows of the file in place of this module. encoding: of a text, if not UTF-8.

    Raises UserError for a file that cannot be read, has no rows or lacks a column.
    """
    try:
        if parse is not None:
            rows: Any = [*parse(file)]
            _require_letters(rows)
        else:
            rows = _parse(file, separator, encoding, strict=strict)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError("it is not a list of rows")
        if not rows:
            raise ValueError("it has no rows")
        for number, row in enumerate(rows, start=1):
            lacking = [name for name in columns if row.get(name) is None]
            if lacking:
                raise ValueError(f"row {number} has no {lacking[0]}")
        return rows
    except Exception as error:
        # Also what Python makes of no text, no date, or a list that is too deep.
        raise UserError(
            f"{file} is not a readable {file.suffix.removeprefix('.') or 'Arrow'} file "
            f"({' '.join(str(error).split())}): copy it again, or save it as JSON lines, CSV or "
            "Parquet."
        ) from error


def _parse(
    file: Path, separator: str | None, encoding: str | None, *, strict: bool
) -> Any:
    """Read the rows of a folder, of CSV by its name, of others by their content."""
    if file.is_dir():
        from datasets import Dataset

        return Dataset.load_from_disk(str(file)).to_list()

    name = file.name.lower()
    raw = file.read_bytes()
    if name.endswith(".gz"):
        name = name.removesuffix(".gz")
        raw = gzip.decompress(raw)
    if raw.startswith(b"PAR1"):
        return _read_parquet(raw)
    # Excel's files are ZIP archives.
    if raw.startswith(b"PK\x03\x04"):
        raise ValueError("it is a workbook, or another archive")

    text = decode_text(raw, encoding)
    if name.endswith(".csv"):
        return read_csv(text, ",", separator, strict=strict)
    if name.endswith(".tsv"):
        return read_csv(text, "\t", separator, strict=strict)
    return _read_json(text)


def _read_json(text: str) -> Any:
    """Read a JSON list, or JSON lines."""
    if text.lstrip().startswith("["):
        rows = json.loads(text)
    else:
        rows = []
        # U+2028 ends no line of JSON, and str.splitlines would end one there.
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error

    # An escape is the only way by which half a letter gets into a text that could be decoded.
    if "\\u" in text:
        _require_letters(rows)
    return rows


def _require_letters(rows: Sequence[Any]) -> None:
    for number, row in enumerate(rows, start=1):
        if has_lone_surrogate(json.dumps(row, ensure_ascii=False)):
            raise ValueError(
                f"row {number} holds half a surrogate pair, which is no letter"
            )


def _read_parquet(raw: bytes) -> list[dict[str, Any]]:
    """Read the rows of Parquet. Numbers of 32 bits stay such: as a Python float, 5.2 has 17
    digits."""
    import pyarrow.parquet as pq
    from pyarrow import types

    table = pq.ParquetFile(BytesIO(raw)).read()
    _require_different(table.column_names)
    rows: list[dict[str, Any]] = table.to_pylist()
    for field in table.schema:
        if not (types.is_float32(field.type) or types.is_float16(field.type)):
            continue
        for row in rows:
            value = row[field.name]
            if value is not None:
                row[field.name] = np.float32(value)

    return rows


def decode_text(raw: bytes, encoding: str | None = None) -> str:
    """Decode a file as UTF-8, or as UTF-16 where it begins with its mark, unless an encoding is
    named. Raises ValueError for another one."""
    is_utf_16 = raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    codec = encoding or ("utf-16" if is_utf_16 else "utf-8")
    try:
        # The mark would be a part of the first column's name.
        return raw.decode(codec).removeprefix("\ufeff")
    except LookupError as error:
        raise ValueError(f"{codec} is no encoding") from error
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"line {line} is not {codec.upper()}: name its encoding, as in table[encoding=cp1252]"
        ) from error


def read_csv(
    text: str, default: str, separator: str | None = None, *, strict: bool = False
) -> list[dict[str, Any]]:
    """Read the rows of a CSV file, whose cells are texts.

    A quote that is never closed, or that Spark escapes by a backslash, moves the ends of fields
    without an error, and a line with too few fields loses an answer. Such a file is refused.

    default: what parts fields; separator: what does, if it is named. strict: find it in the header,
    and refuse a field with line breaks and separators, which an open quote makes, too.
    Raises ValueError for the first line that could be read in two ways.
    """
    if separator is None:
        separator = _find_separator(text, default) if strict else default
    # Python refuses fields of more than 131,072 characters, which long texts have.
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    names: list[str] = []
    rows = []
    first_line = 1
    try:
        for fields in reader:
            line, first_line = first_line, reader.line_num + 1
            # A line of blanks is no row.
            if len(fields) < 2 and not "".join(fields).strip():
                continue
            if not names:
                # As pandas calls the index that its own `to_csv` writes.
                names = [name or f"Unnamed: {at}" for at, name in enumerate(fields)]
                _require_different(names)
                continue
            problem = _describe_problem(fields, len(names), separator, strict=strict)
            if problem is not None:
                raise ValueError(f"line {line}: {problem}")
            rows.append(dict(zip(names, fields, strict=True)))
    except csv.Error as error:
        raise ValueError(
            f"line {first_line}: text follows a closing quote, or a quote is not closed; a quote "
            'within quotes is written twice (""), not as \\"'
        ) from error

    return rows


def _find_separator(text: str, default: str) -> str:
    """Find what parts the names of the header: the default, or the one other sign that it has."""
    header = next(filter(str.strip, text.splitlines()), "")
    signs = [sign for sign in SEPARATORS.values() if sign in header]
    return signs[0] if default not in header and len(signs) == 1 else default


def _describe_problem(
    fields: Sequence[str], width: int, separator: str, *, strict: bool
) -> str | None:
    """Describe what is wrong with a row of a table with so many columns."""
    if len(fields) != width:
        plural = "s" * (len(fields) > 1)
        return f"it has {len(fields)} field{plural}, and the header has {width}"
    for field in fields if strict else ():
        if separator in field and ("\n" in field or "\r" in field):
            return f"a quoted field holds line breaks and {separator!r}, as after an open quote"
    return None


def _require_different(names: Sequence[str]) -> None:
    """Raise ValueError where two columns have one name, blanks around it apart."""
    counts = Counter(filter(None, map(str.strip, names)))
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(f"two columns are called '{repeated[0]}'")
