"""Comparing a report's files with the golden ones of `tests/data/golden`."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console

from smmd_bench.contracts import Artefact
from smmd_bench.publishing import tables
from smmd_bench.publishing.latex import to_latex

FOLDER = Path(__file__).parent.parent / "data" / "golden"


def printed(artefact: Artefact, caption: str, width: int) -> list[str]:
    """The lines of a table for a terminal of 100 columns, on a console of that width."""
    assert artefact.table is not None
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        title = str(artefact.table.attrs["title"])
        console.print(tables.to_terminal(artefact.table, title, caption, 100))
    return [line.rstrip() for line in captured.get().splitlines()]


def assert_golden(name: str, artefact: Artefact) -> None:
    """The table as CSV, Markdown, LaTeX and on a terminal is as it was, and fits 100 columns there.

    With SMMD_BENCH_GOLDEN=write the files are written instead: then read their diff.
    """
    assert artefact.table is not None
    title = str(artefact.table.attrs["title"])
    rows = [line for line in printed(artefact, "", 200)[1:] if " · " not in line]  # after the title
    assert max(map(len, rows)) <= 100
    texts = {
        "csv": tables.to_csv(artefact.table),
        "md": f"**{title}**\n\n{tables.to_markdown(artefact.table)}",
        "tex": to_latex(artefact.table, f"{title}. {artefact.caption}", "tab:golden"),
        "txt": "\n".join(printed(artefact, artefact.caption, 100)) + "\n",
    }
    for suffix, text in texts.items():
        file = FOLDER / f"{name}.{suffix}"
        if os.environ.get("SMMD_BENCH_GOLDEN") == "write":
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8"), f"differs from {file}"
