"""The tables of a run as text for a terminal, kept so that another width can show them again.

RUN/reports/tables/NAME.txt   a report that is a table only, within 100 columns
RUN/reports/.terminal.json    the same tables, to be set for a terminal of another width
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..storage.files import read_json, write_json, write_text
from .make_report import Section
from .tables import as_text, bold_cells
from .terminal_table import to_terminal

WIDTH = 100
_TABLES = ".terminal.json"


def write_terminal_tables(folder: Path, sections: Iterable[Section]) -> list[Path]:
    """Write the tables of the sections without a figure; returns the text files."""
    tables = {
        section.name: table
        for section in sections
        if section.image is None and (table := _described(section)) is not None
    }
    files = {folder / "reports" / "tables" / f"{name}.txt": name for name in tables}
    for file, name in files.items():
        write_text(file, _rendered(tables[name], WIDTH, notes=True))
    write_json(folder / "reports" / _TABLES, tables)
    return [*files]


def read_terminal_tables(
    folder: Path, width: int = WIDTH, names: Collection[str] | None = None
) -> str:
    """Tables of the last `write_reports` as text of that width: the first one, or those of `names`.

    The first one is that of the report with the least `order`.
    """
    tables = read_json(folder / "reports" / _TABLES) or {}
    names = [*tables][:1] if names is None else names
    return "\n".join(
        _rendered(tables[file.stem], width)
        if file.stem in tables
        else file.read_text(encoding="utf-8")
        for file in sorted((folder / "reports" / "tables").glob("*.txt"))
        if file.stem in names
    )


def show_section(section: Section, width: int) -> str:
    """The table of a section as text of that width; empty where it has none."""
    table = _described(section)
    return "" if table is None else _rendered(table, width, notes=True)


def _described(section: Section) -> dict[str, Any] | None:
    """What `_rendered` needs of a section's table, for JSON; None: it has no table."""
    if section.artefact is None or section.artefact.table is None:
        return None
    text = as_text(section.artefact.table)
    return {
        "title": section.title,
        "caption": section.artefact.caption,
        "notes": [*section.artefact.notes],
        "columns": [*text.columns],
        "rows": text.to_numpy().tolist(),
        "values": sorted(map(str, text.attrs.get("values", ()))),
        "optional": [*map(str, text.attrs.get("optional", ()))],
        "bold": sorted(bold_cells(text)),
    }


def _rendered(table: Mapping[str, Any], width: int, *, notes: bool = False) -> str:
    import pandas as pd
    from rich.console import Console

    frame = pd.DataFrame(table["rows"], columns=table["columns"], dtype="str")
    frame.attrs.update({name: table.get(name, ()) for name in ("values", "optional", "bold")})
    file = io.StringIO()
    console = Console(file=file, width=width, color_system=None)
    console.print(to_terminal(frame, table["title"], table["caption"], width))
    for note in table.get("notes", ()) if notes else ():
        console.print(note, markup=False, highlight=False)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())
