"""All registered reports of a run: files, page, and the tables as text for a terminal.

RUN/reports/tables/NAME.txt   a report that is a table only, within 100 columns
"""

from __future__ import annotations

import io
from pathlib import Path

from ..addresses import address
from ..registry import entries
from ..results.files import read_json, write_text
from ..results.run import read_run
from .publish import Section, build, write
from .tables import to_terminal

TERMINAL_WIDTH = 100


def publish_run(folder: Path) -> list[Path]:
    """Make every registered report of the run in `folder`; returns the files, the page last.

    Raises UserError if the folder holds no run.
    """
    stamp = _stamp(folder)
    run = read_run(folder)
    found = entries("reports")
    sections = build(run, [entry.plugin() for entry in found if entry.plugin])
    sections += [
        Section(entry.name, entry.name, "", error=f"{entry.error} (from {entry.origin})")
        for entry in found
        if not entry.plugin
    ]
    sections.sort(key=lambda s: s.artefact is None or s.artefact.figure is not None)  # tables first
    written = write(run, sections)
    for section in sections:
        artefact = section.artefact
        if artefact is not None and artefact.table is not None and artefact.figure is None:
            path = folder / "reports" / "tables" / f"{section.name}.txt"
            write_text(path, _rendered(section.title, artefact.table, artefact.caption))
            written.insert(-1, path)
    write_text(folder / "reports" / ".stamp", stamp)
    return written


def is_published(folder: Path) -> bool:
    """Whether the reports were made, to the end, from what the run now holds."""
    try:
        return (folder / "reports" / ".stamp").read_text(encoding="utf-8") == _stamp(folder)
    except FileNotFoundError:
        return False


def _stamp(folder: Path) -> str:
    """A digest of the addresses of all measurements, regression checks and comparisons."""
    names = ("metrics.json", "comparison.json", "FAILED.json")
    files = sorted(f for name in names for f in (folder / "cells").glob(f"*/{name}"))
    checks = ("results.json", "comparison.json")
    files += sorted(f for name in checks for f in (folder / "regression").glob(f"*/{name}"))
    contents = {f"{f.parent.name}/{f.name}": read_json(f) or {} for f in files}
    return address({name: c.get("address", c.get("error", "")) for name, c in contents.items()})


def published_tables(folder: Path) -> str:
    """The tables of the last `publish_run`, as text."""
    files = sorted((folder / "reports" / "tables").glob("*.txt"))
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def _rendered(title: str, frame: object, caption: str) -> str:
    import pandas as pd
    from rich.console import Console

    assert isinstance(frame, pd.DataFrame)
    console = Console(file=io.StringIO(), width=TERMINAL_WIDTH, color_system=None)
    console.print(to_terminal(frame, title, caption, TERMINAL_WIDTH))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"
