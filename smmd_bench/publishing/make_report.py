"""One report of a run: its artefact, and the files that it is written to.

RUN/reports/tables/NAME.csv, .md, .tex    the table as people read it
RUN/reports/tables/NAME_data.csv          the numbers behind it, in full (a report without figure)
RUN/reports/figures/NAME.png, .pdf, .svg  the figure
RUN/reports/figures/NAME.csv              the numbers behind it

The files follow from the run alone, byte for byte: they hold no dates and no random names.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..contracts import Artefact, Report
from ..storage.files import atomic, write_text
from .latex import to_page
from .pdf_fonts import small_fonts
from .style import figure_style, file_stem
from .tables import to_csv, to_markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..results.frames import RunFrames

FORMATS = ("csv", "md", "tex", "png", "pdf", "svg")
FIGURE_METADATA = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
}
"""Figures carry no date and no version."""
USUAL = 100
"""The `order` of a report that names none."""


@dataclass(frozen=True)
class Section:
    """A report of a run: its artefact and files, or why it has none.

    disk_failed: a disk was the reason, so the same report may succeed the next time. order: the
    report's, by which sections are sorted.

    Once written, an artefact has no `figure` and no `data`: they are in the files.
    """

    name: str
    title: str
    paper: str
    artefact: Artefact | None = None
    files: tuple[Path, ...] = ()
    skipped: str | None = None
    error: str | None = None
    traceback: str | None = None
    disk_failed: bool = False
    order: int = USUAL

    @property
    def image(self) -> Path | None:
        """The figure as PNG, if it was written."""
        return self.file(".png")

    def file(self, suffix: str) -> Path | None:
        """The first of its files with that ending, if there is one."""
        return next((path for path in self.files if path.suffix == suffix), None)


def describe_failure(problem: BaseException) -> tuple[str, str]:
    """The error of a report that raised, in a line, and its traceback."""
    return f"{type(problem).__name__}: {problem}", "".join(traceback.format_exception(problem))


def make_report(run: RunFrames, report: Report, formats: Collection[str] = FORMATS) -> Section:
    """Build a report and write its files, each whole or absent; the section keeps an error."""
    section = build_report(run, report)
    if (artefact := section.artefact) is None:
        return section
    try:
        files = write_artefact(run.path / "reports", section, artefact, formats)
    except Exception as problem:  # a figure that cannot be drawn fails when it is saved
        error, trace = describe_failure(problem)
        disk_failed = isinstance(problem, OSError)
        return replace(
            section, artefact=None, error=error, traceback=trace, disk_failed=disk_failed
        )
    return replace(
        section,
        artefact=Artefact(artefact.caption, artefact.table, notes=artefact.notes),
        files=tuple(files),
    )


def build_report(run: RunFrames, report: Report) -> Section:
    """The artefact of a report; the section keeps an error.

    `table.attrs["title"]`, such as one that names a level, replaces the report's title.
    """
    from threadpoolctl import threadpool_limits

    from ..plugin_system.parameters import canonical

    name, title, paper = report.name, report.title, report.paper
    order = USUAL
    try:
        order = int(getattr(report, "order", USUAL))
        name = file_stem(canonical(report) if hasattr(report, "__dataclass_fields__") else name)
        if (reason := report.skip(run)) is not None:
            return Section(name, title, paper, skipped=reason, order=order)
        # Products are small: BLAS threads that wait for each other cost more than they save.
        with figure_style(), threadpool_limits(1, user_api="blas"):
            artefact = report.build(run)
    except (Exception, SystemExit) as problem:  # a plugin's code may exit
        error, trace = describe_failure(problem)
        disk_failed = isinstance(problem, OSError)
        return Section(
            name, title, paper, error=error, traceback=trace, disk_failed=disk_failed, order=order
        )
    if artefact.table is not None:
        title = str(artefact.table.attrs.get("title") or title)
    return Section(name, title, paper, artefact, order=order)


def write_artefact(
    folder: Path, section: Section, artefact: Artefact, formats: Collection[str] = FORMATS
) -> list[Path]:
    """Write the files of one artefact below `folder` in these formats; returns them."""
    name, title, caption = section.name, section.title, artefact.caption
    texts: dict[Path, str] = {}
    if artefact.table is not None:
        table = artefact.table
        notes = "".join(f"\n- {note}" for note in artefact.notes)
        markdown = f"**{title}**\n\n{to_markdown(table).rstrip()}\n\n{caption}\n"
        markdown += f"{notes}\n" if notes else ""
        texts[folder / "tables" / f"{name}.csv"] = to_csv(table)
        texts[folder / "tables" / f"{name}.md"] = markdown
        texts[folder / "tables" / f"{name}.tex"] = to_page(table, title, caption, f"tab:{name}")
    if artefact.data is not None:
        stem = f"figures/{name}" if artefact.figure else f"tables/{name}_data"
        texts[folder / f"{stem}.csv"] = to_csv(artefact.data)
    files = [path for path in texts if path.suffix[1:] in formats]
    for path in files:
        write_text(path, texts[path])
    if artefact.figure is not None:
        _lay_out(artefact.figure)
        for form in (form for form in FORMATS if form in FIGURE_METADATA and form in formats):
            files.append(folder / "figures" / f"{name}.{form}")
            fonts = small_fonts() if form == "pdf" else nullcontext()
            with atomic(files[-1]) as temporary, figure_style(), fonts:
                artefact.figure.savefig(temporary, format=form, metadata=FIGURE_METADATA[form])
    return files


def _lay_out(figure: Figure) -> None:
    """Make room for all parts once: `savefig` would draw the figure once more for each format."""
    import matplotlib

    if (engine := figure.get_layout_engine()) is not None:
        with figure_style():
            figure.set_dpi(matplotlib.rcParams["savefig.dpi"])  # letter sizes depend on it
            engine.execute(figure)
            figure.set_layout_engine(None)
