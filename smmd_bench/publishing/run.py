"""All registered reports of a run: files, page, and the tables as text for a terminal.

RUN/reports/tables/NAME.txt   a report that is a table only, within 100 columns
RUN/reports/.terminal.json    the same tables, to be set for a terminal of another width
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..registry import entries
from ..results.files import read_json, write_json, write_text
from ..results.run import read_run
from .processes import made_reports
from .publish import Section, write_page
from .stamp import report_stamp
from .tables import as_text, bold_cells, to_terminal
from .up_to_date import compare_what_is_missing

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Progress

TERMINAL_WIDTH = 100
_KEPT = ".terminal.json"


def publish_run(folder: Path, progress: Progress = lambda *_: None) -> list[Path]:
    """Make every registered report of the run in `folder`; returns the files, the page last.

    `progress` hears of the reports that are made. Raises UserError if the folder holds no run.
    """
    compare_what_is_missing(folder)
    stamp = report_stamp(folder)
    run = read_run(folder)
    found = entries("reports")
    sections = made_reports(run, [e.name for e in found if e.plugin], progress)
    sections += [
        Section(entry.name, entry.name, "", error=f"{entry.error} (from {entry.origin})")
        for entry in found
        if not entry.plugin
    ]
    sections.sort(key=lambda s: s.artefact is None or s.image is not None)  # tables first
    written = [path for section in sections for path in section.files]
    kept: dict[str, Any] = {}
    for section in sections:
        artefact = section.artefact
        if artefact is not None and artefact.table is not None and section.image is None:
            path = folder / "reports" / "tables" / f"{section.name}.txt"
            kept[section.name] = _kept(section.title, artefact.table, artefact.caption)
            write_text(path, _rendered(kept[section.name], TERMINAL_WIDTH))
            written.append(path)
    written.append(write_page(run, sections))
    for kind in ("tables", "figures"):  # of a report that is not there any more
        for file in (folder / "reports" / kind).glob("*.*"):
            if file not in written:
                file.unlink()
    write_json(folder / "reports" / _KEPT, kept)
    write_text(folder / "reports" / ".stamp", stamp)
    return written


def is_published(folder: Path) -> bool:
    """Whether the reports were made, to the end, from what the run holds and by the code that is
    here now."""
    try:
        return (folder / "reports" / ".stamp").read_text(encoding="utf-8") == report_stamp(folder)
    except FileNotFoundError:
        return False


def published_tables(
    folder: Path, width: int = TERMINAL_WIDTH, names: Collection[str] | None = None
) -> str:
    """The tables of the last `publish_run`, or those of these reports, as text of that width."""
    kept = read_json(folder / "reports" / _KEPT) or {}
    files = sorted((folder / "reports" / "tables").glob("*.txt"))
    return "\n".join(
        _rendered(kept[file.stem], width) if file.stem in kept else file.read_text(encoding="utf-8")
        for file in files
        if names is None or file.stem in names
    )


def _kept(title: str, frame: pd.DataFrame, caption: str) -> dict[str, Any]:
    text = as_text(frame)
    return {
        "title": title,
        "caption": caption,
        "columns": [*text.columns],
        "rows": text.to_numpy().tolist(),
        "values": sorted(map(str, frame.attrs.get("values", ()))),
        "bold": sorted(bold_cells(frame)),
    }


def _rendered(kept: Mapping[str, Any], width: int) -> str:
    import pandas as pd
    from rich.console import Console

    frame = pd.DataFrame(kept["rows"], columns=kept["columns"], dtype="str")
    frame.attrs["values"], frame.attrs["bold"] = kept["values"], kept.get("bold", ())
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(to_terminal(frame, kept["title"], kept["caption"], width))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"
