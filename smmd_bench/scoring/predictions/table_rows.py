"""Rows of tables: CSV (commas, or tabs in a .tsv) and Parquet."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

from ...errors import UserError
from .rows import Row, fault


def csv_rows(path: Path, text: str) -> list[Row]:
    """The rows of a CSV file, by the line that each starts at; every value is text.

    Raises UserError for a broken quotation, a column that stands twice, or a row with more or fewer
    fields than the header.
    """
    csv.field_size_limit(sys.maxsize)  # of 128 KiB, which a long completion exceeds
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    rows, line = [], 1
    try:
        for fields in reader:
            place, line = f"line {line}", reader.line_num + 1
            if fields and not header:
                header = [name.strip() for name in fields]
                if twice := [name for name in header if header.count(name) > 1]:
                    raise fault(path, place, f"the column '{twice[0]}' stands twice: rename one.")
            elif fields and len(fields) != len(header):
                raise fault(
                    path,
                    place,
                    f"has {len(fields)} fields, and the header {len(header)}: put quotation marks "
                    "around a text that holds a comma or a line break.",
                )
            elif fields:
                rows.append(Row(place, dict(zip(header, fields, strict=True))))
    except csv.Error as error:
        raise fault(
            path,
            f"line {line}",
            f"is no CSV ({error}): write quotation marks within a text twice, and close each text.",
        ) from error
    return rows


def parquet_rows(path: Path) -> list[Row]:
    """The rows of a Parquet file, counted from 1. Raises UserError for what is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            values = file.read().to_pylist()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(
            f"{path} is no readable Parquet file ({reason}): write it again."
        ) from error
    return [Row(f"row {number}", row) for number, row in enumerate(values, start=1)]
