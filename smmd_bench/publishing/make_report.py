"""One report of a run: its artefact, and the files that it is written to.

RUN/reports/tables/NAME.csv, .md, .tex    the table as people read it
RUN/reports/tables/NAME_data.csv          the numbers behind it, in full (a report without figure)
RUN/reports/figures/NAME.png, .svg        the figure; .pdf where it is asked for
RUN/reports/figures/NAME.csv              the numbers behind it

The files follow from the run alone, byte for byte: they hold no dates and no random names.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..contracts import Artefact, Report
from ..storage.files import atomic, write_text
from .latex import to_latex
from .style import figure_style, file_stem
from .tables import to_csv, to_markdown

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..results.frames import RunFrames

FORMATS = ("csv", "md", "tex", "png", "svg")
"""The endings of what is written if no format is asked for."""
FIGURE_METADATA = {
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}
"""Figures carry no date and no version."""
USUAL = 100
"""The `order` of a report that names none."""


@dataclass(frozen=True)
class Section:
    """A report of a run: its artefact and files, or why it has none.

    order: the report's, by which sections are sorted. Once written, an artefact has no `figure` and
    no `data`: they are in the files.
    """

    name: str
    title: str
    paper: str
    order: int = USUAL
    artefact: Artefact | None = None
    files: tuple[Path, ...] = ()
    skipped: str | None = None
    error: str | None = None
    traceback: str | None = None

    @property
    def table(self) -> pd.DataFrame | None:
        """The table, if there is one."""
        return None if self.artefact is None else self.artefact.table

    @property
    def caption(self) -> str:
        """What stands below the table or figure."""
        return "" if self.artefact is None else self.artefact.caption

    @property
    def image(self) -> Path | None:
        """The figure as PNG, if it was written."""
        return self.file(".png")

    def file(self, suffix: str) -> Path | None:
        """The first of its files with that ending, if there is one."""
        return next((path for path in self.files if path.suffix == suffix), None)

    def failed(self, problem: BaseException) -> Section:
        """The section of a report that raised."""
        trace = "".join(traceback.format_exception(problem))
        return replace(
            self, artefact=None, error=f"{type(problem).__name__}: {problem}", traceback=trace
        )


def make_report(run: RunFrames, report: Report, formats: Collection[str] = FORMATS) -> Section:
    """Build a report and write its files, each whole or absent; the section keeps an error."""
    section = build_report(run, report)
    if (artefact := section.artefact) is None:
        return section
    try:
        files = write_artefact(run.path / "reports", section, artefact, formats)
    except Exception as problem:  # a figure that cannot be drawn fails when it is saved
        return section.failed(problem)
    shown = Artefact(artefact.caption, artefact.table, notes=artefact.notes)
    return replace(section, artefact=shown, files=tuple(files))


def build_report(run: RunFrames, report: Report) -> Section:
    """The artefact of a report; the section keeps an error.

    `table.attrs["title"]`, such as one that names a level, replaces the report's title.
    """
    from threadpoolctl import threadpool_limits

    from ..plugin_system.parameters import canonical

    order = int(getattr(report, "order", USUAL))
    section = Section(report.name, report.title, report.paper, order)
    try:
        if hasattr(report, "__dataclass_fields__"):
            section = replace(section, name=file_stem(canonical(report)))
        if (reason := report.skip(run)) is not None:
            return replace(section, skipped=reason)
        # Products are small: BLAS threads that wait for each other cost more than they save.
        with figure_style(), threadpool_limits(1, user_api="blas"):
            artefact = report.build(run)
    except (Exception, SystemExit) as problem:  # a plugin's code may exit
        return section.failed(problem)
    title = "" if artefact.table is None else artefact.table.attrs.get("title")
    return replace(section, title=str(title or section.title), artefact=artefact)


def write_artefact(
    folder: Path, section: Section, artefact: Artefact, formats: Collection[str] = FORMATS
) -> list[Path]:
    """Write the files of one artefact below `folder` in these formats; returns them."""
    name, title, table, texts = section.name, section.title, artefact.table, {}
    if table is not None:
        notes = "\n".join(f"- {note}" for note in artefact.notes)
        parts = [f"**{title}**", to_markdown(table).rstrip(), artefact.caption, notes]
        caption = f"{title}{'' if title.endswith('?') else '.'} {artefact.caption}"
        texts[f"tables/{name}.csv"] = to_csv(table)
        texts[f"tables/{name}.md"] = "\n\n".join(filter(None, parts)) + "\n"
        texts[f"tables/{name}.tex"] = to_latex(table, caption, f"tab:{name}")
    if artefact.data is not None:
        place = f"figures/{name}.csv" if artefact.figure else f"tables/{name}_data.csv"
        texts[place] = to_csv(artefact.data)
    files = [folder / place for place in texts if place.rpartition(".")[2] in formats]
    for file in files:
        write_text(file, texts[file.relative_to(folder).as_posix()])
    drawn = [] if artefact.figure is None else _draw(artefact.figure, folder, name, formats)
    return [*files, *drawn]


def _draw(figure: Figure, folder: Path, name: str, formats: Collection[str]) -> list[Path]:
    """Write a figure in these formats; its parts are laid out once for all of them."""
    import matplotlib

    files = []
    with figure_style():
        if (engine := figure.get_layout_engine()) is not None:
            figure.set_dpi(matplotlib.rcParams["savefig.dpi"])  # letter sizes depend on it
            engine.execute(figure)
            figure.set_layout_engine(None)
        for form in (form for form in FIGURE_METADATA if form in formats):
            files.append(folder / "figures" / f"{name}.{form}")
            with atomic(files[-1]) as temporary:
                figure.savefig(temporary, format=form, metadata=FIGURE_METADATA[form])
    return files
