"""Turns reports into files: tables, figures and the page.

RUN/reports/tables/NAME.csv, .md, .tex    the table as it is read
RUN/reports/tables/NAME_data.csv          the numbers behind it, in full (a report without figure)
RUN/reports/figures/NAME.png, .pdf, .csv  the figure, and the numbers behind it
RUN/reports/index.html                    all of it in one file
RUN/reports/failed.json                   reports that raised, if any, with their tracebacks

The files follow from the run alone, byte for byte: no dates, no random names. A report that
raises is listed with its error and breaks nothing else.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..contracts import Artefact, Report
from ..storage.files import atomic, read_json, write_json, write_text
from . import tables
from .examples import embedded_examples
from .latex import to_page
from .page import PageSection, render_page
from .style import figure_style, file_stem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..results.frames import RunFrames

FAILED = "failed.json"
FORMATS = ("csv", "md", "tex", "png", "pdf")
_WITHOUT_DATES = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}


@dataclass(frozen=True)
class Section:
    """A report of a run: its artefact and the files that it was written to, or why there is none.

    Once written, an artefact has no `figure` and no `data` any more: they are in the files.
    """

    name: str
    title: str
    paper: str
    artefact: Artefact | None = None
    files: tuple[Path, ...] = ()
    skipped: str | None = None
    error: str | None = None
    traceback: str | None = None

    @property
    def image(self) -> Path | None:
        """The figure, where it was written as PNG."""
        return next((path for path in self.files if path.suffix == ".png"), None)


def made(run: RunFrames, report: Report, formats: Collection[str] = FORMATS) -> Section:
    """Build a report and write its files, each whole or absent; an error is kept in the section."""
    section = build(run, report)
    artefact = section.artefact
    if artefact is None:
        return section
    try:
        files = write_artefact(run.path / "reports", section, artefact, formats)
    except Exception as problem:  # a figure that cannot be drawn shows when it is saved
        error, where = _say(problem), _traceback(problem)
        return replace(section, artefact=None, error=error, traceback=where)
    return replace(section, artefact=Artefact(artefact.caption, artefact.table), files=tuple(files))


def write_page(run: RunFrames, sections: Sequence[Section]) -> Path:
    """Write the page of sections that were made, and which of them failed."""
    folder = run.path / "reports"
    failed = {
        section.name: {"error": section.error, "traceback": section.traceback}
        for section in sections
        if section.error is not None
    }
    shown = [_page_section(folder, section) for section in sections]
    try:
        examples = embedded_examples(run)
        page = render_page(run, shown, examples)
    except Exception as problem:
        failed["completions"] = {"error": _say(problem), "traceback": _traceback(problem)}
        page = render_page(run, shown, _say(problem))
    write_text(folder / "index.html", page)
    (folder / FAILED).unlink(missing_ok=True)
    if failed:
        write_json(folder / FAILED, failed)
    return folder / "index.html"


def failed_reports(folder: Path) -> dict[str, str]:
    """What the last `write_page` of a run could not make: the error of each report, by name."""
    failed = read_json(folder / "reports" / FAILED) or {}
    return {name: content["error"] for name, content in failed.items()}


def _traceback(error: Exception) -> str:
    return "".join(traceback.format_exception(error))


def build(run: RunFrames, report: Report) -> Section:
    """The artefact of a report; an error is kept in the section.

    A table may carry a title of its own in `table.attrs["title"]`, such as one that names a level;
    else the report's title stands.
    """
    from threadpoolctl import threadpool_limits

    from ..plugin_system.parameters import canonical

    name, title, paper = report.name, report.title, report.paper
    try:
        name = file_stem(canonical(report) if hasattr(report, "__dataclass_fields__") else name)
        if (reason := report.skip(run)) is not None:
            return Section(name, title, paper, skipped=reason)
        # BLAS threads that wait for each other cost more here than they save: products are small.
        with figure_style(), threadpool_limits(1, user_api="blas"):
            artefact = report.build(run)
    except Exception as problem:
        return Section(name, title, paper, error=_say(problem), traceback=_traceback(problem))
    if artefact.table is not None:
        title = str(artefact.table.attrs.get("title") or title)
    return Section(name, title, paper, artefact)


def write_artefact(
    folder: Path, section: Section, artefact: Artefact, formats: Collection[str] = FORMATS
) -> list[Path]:
    """Write the files of one artefact below `folder`, in some formats; returns them."""
    texts: dict[Path, str] = {}
    if artefact.table is not None:
        stem = folder / "tables" / f"{section.name}.csv"
        markdown, heading = tables.to_markdown(artefact.table), f"**{section.title}**"
        label = f"tab:{section.name}"
        texts[stem] = tables.to_csv(artefact.table)
        texts[stem.with_suffix(".md")] = "\n\n".join(
            [heading, markdown.rstrip(), artefact.caption + "\n"]
        )
        texts[stem.with_suffix(".tex")] = to_page(
            artefact.table, section.title, artefact.caption, label
        )
    if artefact.data is not None:
        where = f"figures/{section.name}" if artefact.figure else f"tables/{section.name}_data"
        texts[folder / f"{where}.csv"] = tables.to_csv(artefact.data)
    files = [path for path in texts if path.suffix[1:] in formats]
    for path in files:
        write_text(path, texts[path])
    if artefact.figure is not None:
        _lay_out(artefact.figure)
        for form, metadata in _WITHOUT_DATES.items():
            if form not in formats:
                continue
            path = folder / "figures" / f"{section.name}.{form}"
            with atomic(path) as temporary, figure_style():
                artefact.figure.savefig(temporary, format=form, metadata=metadata)
            files.append(path)
    return files


def _lay_out(figure: Figure) -> None:
    """Make room for all parts once: `savefig` would draw the figure an extra time for it."""
    import matplotlib

    engine = figure.get_layout_engine()
    if engine is not None:
        with figure_style():
            figure.set_dpi(matplotlib.rcParams["savefig.dpi"])  # sizes of letters hang on it
            engine.execute(figure)
            figure.set_layout_engine(None)


def _page_section(folder: Path, section: Section) -> PageSection:
    artefact = section.artefact
    return PageSection(
        name=section.name,
        title=section.title,
        paper=section.paper,
        caption=artefact.caption if artefact else "",
        table=artefact.table if artefact else None,
        image=section.image.read_bytes() if section.image else None,
        files=[path.relative_to(folder).as_posix() for path in section.files],
        skipped=section.skipped,
        error=section.error,
    )


def _say(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"
