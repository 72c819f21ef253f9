"""The reports of a run: all of them with the page, or those that `--only` and `--format` name.

RUN/reports/.written.json   the files of the last `write_reports`: others may lie among them
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError
from ..plugin_system.registry import entries
from ..results.frames import read_run
from ..run.comparison import missing_comparisons, write_comparisons
from ..run.run_directory import RunDirectory
from ..storage.files import read_json, write_json
from .make_report import FORMATS, Section
from .notes import write_notes
from .page import write_page
from .processes import make_reports
from .report_names import reports_named
from .terminal import write_terminal_tables

if TYPE_CHECKING:
    from ..contracts import Progress

_WRITTEN = ".written.json"


def write_reports(folder: Path, progress: Progress = lambda *_: None) -> list[Path]:
    """Make every registered report of the run in `folder`; returns the files, the page last.

    `progress` hears of the reports that are made. Raises UserError if the folder holds no run.
    """
    _compare_cells(folder)
    run, found = read_run(folder), entries("reports")
    sections = make_reports(run, [e.name for e in found if e.plugin], progress)
    sections += [
        Section(e.name, e.name, "", error=f"{e.error} (from {e.origin})")
        for e in found
        if not e.plugin
    ]
    sections.sort(key=lambda s: (s.artefact is None or s.image is not None, s.order))
    written = [path for section in sections for path in section.files]
    written += write_terminal_tables(folder, sections)
    written += write_notes(folder, sections)
    written.append(write_page(run, sections))
    _remove_others(folder / "reports", [section.name for section in sections], written)
    return written


def write_some_reports(
    folder: Path,
    only: Sequence[str],
    formats: Collection[str] = FORMATS,
    progress: Progress = lambda *_: None,
) -> tuple[list[Section], list[Path]]:
    """Make the reports that `only` names (none: all); returns them and the files written.

    The page and the other files stay as they are. A name is a report's or the paper's:
    `arithmetic_table`, `table2`, `figure3`. `formats` are endings. Raises UserError for an unknown
    name, and if nothing is made.
    """
    _compare_cells(folder)
    papers = {e.name: str(getattr(e.plugin, "paper", "")) for e in entries("reports") if e.plugin}
    names = reports_named(only or papers, papers)
    sections = make_reports(read_run(folder), names, progress, formats)
    written = [path for section in sections for path in section.files]
    if not written and not any(section.error for section in sections):
        missing = "it has none of these formats"
        reasons = "; ".join(f"{s.name}: {s.skipped or missing}" for s in sections)
        raise UserError(f"Nothing was made of {folder}: {reasons}.")
    return sections, written


def _compare_cells(folder: Path) -> None:
    """Write the comparisons that a killed command left out, unless a process works on the run."""
    if missing_comparisons(read_run(folder)):
        with suppress(UserError), RunDirectory(folder).locked():
            write_comparisons(read_run(folder))


def _remove_others(reports: Path, names: Iterable[str], written: Collection[Path]) -> None:
    """Remove the reports' files that were not written this time; files of other names stay.

    They are those that the last `write_reports` listed, and those with a name that a report gives
    today: `report --only` and a killed command list nothing.
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
