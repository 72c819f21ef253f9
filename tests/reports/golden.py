"""Comparing a report's table with the golden files of `tests/data/golden`."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
from rich.console import Console

from smmd_bench.contracts import Artefact
from smmd_bench.publishing import tables
from smmd_bench.publishing.terminal import to_terminal

FOLDER = Path(__file__).parent.parent / "data" / "golden"


def printed(table: pd.DataFrame, caption: str, width: int, of: int = 100) -> list[str]:
    """The lines of a table for a terminal of `of` columns, on a console of that width."""
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        title = str(table.attrs.get("title", ""))
        console.print(to_terminal(table, title, caption, of))
    return [line.rstrip() for line in captured.get().splitlines()]


def words(artefact: Artefact) -> str:
    """The caption and the notes."""
    return " ".join([artefact.caption, *artefact.notes])


def widest_line(table: pd.DataFrame) -> int:
    """Columns of a terminal that the rows of a table take, without its title and headings."""
    return max(len(line) for line in printed(table, "", 200)[1:] if " · " not in line)


def assert_golden(name: str, artefact: Artefact) -> None:
    """The table as CSV is as it was, and fits 100 columns on a terminal.

    With SMMD_BENCH_GOLDEN=write the file is written instead: then read its diff.
    """
    table, file = artefact.table, FOLDER / f"{name}.csv"
    assert table is not None
    assert widest_line(table) <= 100
    text = tables.to_csv(table)
    if os.environ.get("SMMD_BENCH_GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"differs from {file}"
