"""All registered reports of a run: files, page, and the tables as text for a terminal.

RUN/reports/tables/NAME.txt   a report that is a table only, within 100 columns
RUN/reports/.terminal.json    the same tables, to be set for a terminal of another width
RUN/reports/.written.json     the files of the last publication, among which there may be others
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..plugin_system.registry import entries
from ..results.frames import read_run
from ..storage.files import read_json, write_json, write_text
from .processes import made_reports
from .publish import FORMATS, Section, write_page
from .stamp import report_stamp
from .tables import as_text, bold_cells, to_terminal
from .up_to_date import compare_what_is_missing

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Progress

TERMINAL_WIDTH = 100
_KEPT, _STAMP = ".terminal.json", ".stamp"
_WRITTEN = ".written.json"


def publish_run(folder: Path, progress: Progress = lambda *_: None) -> list[Path]:
    """Make every registered report of the run in `folder`; returns the files, the page last.

    `progress` hears of the reports that are made. Raises UserError if the folder holds no run.
    """
    compare_what_is_missing(folder)
    stamp = report_stamp(folder)
    forget_publication(folder)
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
    _remove_others(folder / "reports", [section.name for section in sections], written)
    write_json(folder / "reports" / _KEPT, kept)
    write_text(folder / "reports" / _STAMP, stamp)
    return written


def _remove_others(reports: Path, names: Collection[str], written: Collection[Path]) -> None:
    """Remove the reports' files that this publication did not write; all other files stay.

    They are those that the last publication listed, and those with a name that a report of today
    gives: `report --only` and a publication that was killed list nothing.
    """
    ours = {reports / name for name in (read_json(reports / _WRITTEN) or {}).get("files", ())}
    for name in names:
        ours |= {reports / "tables" / f"{name}.{form}" for form in (*FORMATS, "txt")}
        ours |= {reports / "figures" / f"{name}.{form}" for form in FORMATS}
        ours.add(reports / "tables" / f"{name}_data.csv")
    for file in ours.difference(written):
        file.unlink(missing_ok=True)
    files = sorted(file.relative_to(reports).as_posix() for file in written)
    write_json(reports / _WRITTEN, {"files": files})


def forget_publication(folder: Path) -> None:
    """From here on the reports on disk do not count as made to the end."""
    (folder / "reports" / _STAMP).unlink(missing_ok=True)


def is_stale(folder: Path) -> bool:
    """Whether there are reports of an earlier state of the run, or by other code."""
    return (folder / "reports" / _STAMP).exists() and not is_published(folder)


def is_published(folder: Path) -> bool:
    """Whether the reports were made, to the end, from what the run holds and by the code that is
    here now."""
    try:
        return (folder / "reports" / _STAMP).read_text(encoding="utf-8") == report_stamp(folder)
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
