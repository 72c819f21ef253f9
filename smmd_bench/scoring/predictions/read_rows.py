"""The rows of a file, whatever its format, which is found by extension and else by content."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import UserError
from .rows import Row, RowError, located, shown


def read_rows(path: Path) -> tuple[str, list[Row]]:
    """The format of a file, and its rows. Raises UserError for a file that cannot be read."""
    raw = path.read_bytes()
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq") or raw.startswith(b"PAR1"):
        return "Parquet", _parquet_rows(path)
    text = _decoded(path, raw)
    start = text.lstrip()[:1]
    form: str
    read: Callable[[Path, str], list[Row]]
    if suffix in (".csv", ".tsv"):
        form, read = "CSV", _csv_rows
    elif start == "[":
        form, read = "JSON list", _list_rows
    elif start in ("", "{") or suffix in (".jsonl", ".ndjson", ".json"):
        form, read = "JSON lines", _line_rows
    else:
        raise UserError(
            f"{path} has no known format: give JSON lines, a JSON list, CSV or Parquet, with the "
            "extension .jsonl, .json, .csv or .parquet."
        )
    return form, read(path, text)


def _decoded(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line}: is not UTF-8: save the file as UTF-8.") from error


def _line_rows(path: Path, text: str) -> list[Row]:
    """One JSON object per line; lines without text are left out."""
    rows = []
    # Not splitlines(), which also splits at U+2028 and others that may be part of a text.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            with located(path, f"line {number}"):
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise RowError(f"{_invalid(error)}: write one JSON object per line.") from error
                rows.append(Row(f"line {number}", _object(value)))
    return rows


def _list_rows(path: Path, text: str) -> list[Row]:
    """The objects of one JSON list."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f"line {getattr(error, 'lineno', 1)}"
        raise UserError(
            f"{path}, {place}: {_invalid(error)}: write one list of JSON objects."
        ) from error
    rows = []
    for number, value in enumerate(values, start=1):
        with located(path, f"entry {number}"):
            rows.append(Row(f"entry {number}", _object(value)))
    return rows


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RowError(
            f'is {shown(value)}, not a JSON object: write {{"id": ..., "completion": ...}}.'
        )
    return value


def _invalid(error: Exception) -> str:
    reason = getattr(error, "msg", str(error).partition("\n")[0])
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else reason
    return f"is not valid JSON ({reason})"


def _csv_rows(path: Path, text: str) -> list[Row]:
    """The rows below the header, by the line that each starts at; every value is text."""
    csv.field_size_limit(sys.maxsize)  # the default, 128 KiB, is less than a long completion
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    rows: list[Row] = []
    while True:
        place = f"line {reader.line_num + 1}"
        with located(path, place):
            try:
                fields = next(reader)
            except StopIteration:
                return rows
            except csv.Error as error:
                raise RowError(
                    f"is not valid CSV ({error}): double the quotation marks within a text, and "
                    "close each text."
                ) from error
            if fields and header:
                rows.append(Row(place, _named(header, fields)))
            elif fields:
                header = [name.strip() for name in fields]
                if twice := [name for name in header if header.count(name) > 1]:
                    raise RowError(f"the column '{twice[0]}' appears twice: rename one.")


def _named(header: list[str], fields: list[str]) -> dict[str, str]:
    if len(fields) != len(header):
        raise RowError(
            f"has {len(fields)} fields, but the header has {len(header)}: quote a text that holds "
            "a comma or a line break."
        )
    return dict(zip(header, fields, strict=True))


def _parquet_rows(path: Path) -> list[Row]:
    """The rows of a Parquet file, counted from 1."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:  # unlike read_table, it takes no folder for a partition
            values = file.read().to_pylist()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(
            f"{path} is not a readable Parquet file ({reason}): write it again."
        ) from error
    return [Row(f"row {number}", row) for number, row in enumerate(values, start=1)]
