"""Rows of a Parquet file that a stranger may have written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

MOST_ROWS = 5_000_000
"""A Parquet file of two megabytes can hold a billion equal rows."""


def foreign_rows(path: Path | BinaryIO) -> list[dict[str, Any]]:
    """All rows of the file. Raises ValueError where it has more than any task has examples, and
    what pyarrow raises where it cannot be read."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:  # unlike read_table, it takes no folder for a partition
        if (rows := _most_said(file.metadata)) > MOST_ROWS:
            raise ValueError(f"it has {rows:,} rows, more than any task has examples")
        found: list[dict[str, Any]] = file.read().to_pylist()
    return found


def _most_said(metadata: Any) -> int:
    """The largest number of rows that the file or a part of it claims: Arrow makes room for it.

    Columns are not asked: Arrow ends the process where the footer of one is damaged.
    """
    groups = range(metadata.num_row_groups)
    said: list[int] = [metadata.num_rows, *(metadata.row_group(at).num_rows for at in groups)]
    return max(said)
