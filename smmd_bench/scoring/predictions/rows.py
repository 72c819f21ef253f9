"""The rows of a file, whatever its format, which is found by extension and else by content."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import UserError, reason_of
from ...storage.foreign_parquet import foreign_rows


class Row(NamedTuple):
    """One entry of a file; `place` is how an error names it: "line 3", "row 3", "entry 3"."""

    path: Path
    place: str
    values: Mapping[str, Any]

    def error(self, wrong: str) -> UserError:
        """An error that names the file, the place, what is wrong there, and the remedy."""
        return UserError(f"{self.path}, {self.place}: {wrong}")


def shown(value: object) -> str:
    """A value in an error: in quotes if it is a text, and cut if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def read_rows(path: Path) -> tuple[str, list[Row]]:
    """The format of a file, and its rows. Raises UserError for a file that cannot be read."""
    raw, suffix = path.read_bytes(), path.suffix.lower()
    if raw.startswith(b"\x1f\x8b"):
        suffix = Path(path.stem).suffix.lower() if suffix == ".gz" else suffix
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(
                f"{path} is not a whole gzip file ({reason_of(error)}): copy it again."
            ) from error
    if suffix in (".parquet", ".pq") or raw.startswith(b"PAR1"):
        return "Parquet", _parquet_rows(path, raw)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line}: is not UTF-8: save the file as UTF-8.") from error
    start = text.lstrip()[:1]
    if suffix in (".csv", ".tsv"):
        return "CSV", list(_csv_rows(path, text, "\t" if suffix == ".tsv" else ","))
    if start == "[":
        entries = _parsed(path, text, 1, "one list of JSON objects")
        return "JSON list", [_row(path, f"entry {n}", v) for n, v in enumerate(entries, start=1)]
    if start in ("", "{") or suffix in (".jsonl", ".ndjson", ".json"):
        # Not splitlines(), which also splits at U+2028 and others that may be part of a text.
        lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
        return "JSON lines", [
            _row(path, f"line {n}", _parsed(path, line, n, "one JSON object per line"))
            for n, line in lines
        ]
    raise UserError(
        f"{path} has no known format: give JSON lines, a JSON list, CSV or Parquet, with the "
        "extension .jsonl, .json, .csv or .parquet, also with .gz."
    )


def _parsed(path: Path, text: str, first_line: int, expected: str) -> Any:
    """The JSON of a text that begins at a line of the file."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", str(error).partition("\n")[0])
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else reason
        line = first_line - 1 + getattr(error, "lineno", 1)
        raise UserError(
            f"{path}, line {line}: is not valid JSON ({reason}): write {expected}."
        ) from error


def _row(path: Path, place: str, value: Any) -> Row:
    if isinstance(value, dict):
        return Row(path, place, value)
    raise Row(path, place, {}).error(
        f'is {shown(value)}, not a JSON object: write {{"id": ..., "completion": ...}}.'
    )


def _csv_rows(path: Path, text: str, delimiter: str) -> Iterator[Row]:
    """The rows below the header, by the line that each starts at; every value is text."""
    csv.field_size_limit(sys.maxsize)  # the default, 128 KiB, is less than a long completion
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    while True:
        row = Row(path, f"line {reader.line_num + 1}", {})
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise row.error(
                f"is not valid CSV ({error}): double the quotation marks within a text, and "
                "close each text."
            ) from error
        if fields and not header:
            header = [name.strip() for name in fields]
            if twice := [name for name, count in Counter(header).items() if count > 1]:
                raise row.error(f"the column '{twice[0]}' appears twice: rename one.")
        elif fields and len(fields) != len(header):
            raise row.error(
                f"has {len(fields)} fields, but the header has {len(header)}: quote a text that "
                "holds a comma or a line break."
            )
        elif fields:
            yield row._replace(values=dict(zip(header, fields, strict=True)))


def _parquet_rows(path: Path, raw: bytes) -> list[Row]:
    try:
        values = foreign_rows(io.BytesIO(raw))
    except Exception as error:  # also what Python makes of no text, no date, no time zone
        raise UserError(
            f"{path} is not a readable Parquet file ({reason_of(error)}): write it again."
        ) from error
    return [Row(path, f"row {number}", row) for number, row in enumerate(values, start=1)]
