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
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..contracts import Artefact, Report
from ..results.files import atomic, read_json, write_json, write_text
from . import tables
from .examples import embedded_examples
from .latex import to_page
from .page import PageSection, render_page
from .style import figure_style, file_stem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..results.run import RunFrames

FAILED = "failed.json"
FORMATS = ("csv", "md", "tex", "png", "pdf")
_WITHOUT_DATES = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}


@dataclass(frozen=True)
class Section:
    """A report of a run: its artefact, or why there is none."""

    name: str
    title: str
    paper: str
    artefact: Artefact | None = None
    skipped: str | None = None
    error: str | None = None
    traceback: str | None = None


def publish(run: RunFrames, reports: Iterable[Report]) -> list[Path]:
    """Build the reports and write their files and the page; the page's path comes last."""
    return write(run, build(run, reports))


def build(run: RunFrames, reports: Iterable[Report]) -> list[Section]:
    """The artefact of every report, in order; an error of one is kept in its section.

    A table may carry a title of its own in `table.attrs["title"]`, such as one that names a level;
    else the report's title stands.
    """
    return [_build(run, report) for report in reports]


def write(run: RunFrames, sections: Sequence[Section]) -> list[Path]:
    """Write the files of the sections and the page; each is whole or absent."""
    folder = run.path / "reports"
    written: list[Path] = []
    shown = []
    failed: dict[str, dict[str, str | None]] = {}
    for section in sections:
        files: list[Path] = []
        error = section.error
        if section.artefact is not None:
            try:
                files = write_artefact(folder, section, section.artefact)
            except Exception as problem:  # a figure that cannot be drawn shows when it is saved
                error = _say(problem)
                failed[section.name] = {"error": error, "traceback": _traceback(problem)}
        elif error is not None:
            failed[section.name] = {"error": error, "traceback": section.traceback}
        written += files
        shown.append(_page_section(folder, section, files, error))
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
    return [*written, folder / "index.html"]


def failed_reports(folder: Path) -> dict[str, str]:
    """What the last `write` of a run could not make: the error of each report, by name."""
    failed = read_json(folder / "reports" / FAILED) or {}
    return {name: content["error"] for name, content in failed.items()}


def _traceback(error: Exception) -> str:
    return "".join(traceback.format_exception(error))


def _build(run: RunFrames, report: Report) -> Section:
    from ..parameters import canonical

    name, title, paper = report.name, report.title, report.paper
    try:
        name = file_stem(canonical(report) if hasattr(report, "__dataclass_fields__") else name)
        if (reason := report.skip(run)) is not None:
            return Section(name, title, paper, skipped=reason)
        with figure_style():
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


def _page_section(
    folder: Path, section: Section, files: Sequence[Path], error: str | None
) -> PageSection:
    image = next((path for path in files if path.suffix == ".png"), None)
    artefact = section.artefact if error is None else None
    return PageSection(
        name=section.name,
        title=section.title,
        paper=section.paper,
        caption=artefact.caption if artefact else "",
        table=artefact.table if artefact else None,
        image=image.read_bytes() if image else None,
        files=[path.relative_to(folder).as_posix() for path in files],
        skipped=section.skipped,
        error=error,
    )


def _say(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"
