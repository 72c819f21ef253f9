"""The reports of a run: all of them with the page, or those that `--only` and `--format` name.

RUN/reports/tables/NAME.csv, .md, .tex    the table as people read it
RUN/reports/tables/NAME_data.csv          the numbers behind it, in full (a report without figure)
RUN/reports/figures/NAME.png, .svg        the figure; .pdf where it is asked for
RUN/reports/figures/NAME.csv              the numbers behind it

The files follow from the run alone, byte for byte: they hold no dates and no random names.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..contracts import Artefact, Progress, Report
from ..errors import ReportSkippedError, UserError, did_you_mean
from ..plugin_system.parameters import canonical
from ..plugin_system.registry import entries, entry, names
from ..results.availability import describe_old_code, require_plugins
from ..results.frames import RunFrames, read_run
from ..run.comparison import missing_comparisons, write_comparisons
from ..run.run_directory import RunDirectory
from ..storage.files import atomic, write_text
from .page import Section, write_page
from .style import figure_style, file_stem
from .tables import to_csv, to_latex, to_markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("csv", "md", "tex", "png", "svg")
"""The endings of what is written if no format is asked for."""
FIGURE_METADATA = {
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}
"""Figures carry no date and no version."""
_NUMBER = re.compile(r"(?:Table|Figure) \d+(?: \([a-z]\))?")


def write_reports(folder: Path, progress: Progress = lambda *_: None) -> list[Section]:
    """Make every registered report of the run in `folder`, and its page.

    Tables come first, the verdict before the others. `progress` hears of the reports that are made.
    Raises UserError if the folder holds no run.
    """
    sections = _make_reports(folder, names("reports"), FORMATS, progress)
    sections.sort(key=_place_on_page)
    for section in sections:
        _remove_earlier_files(folder / "reports", section)
    write_page(read_run(folder), sections)
    return sections


def _place_on_page(section: Section) -> tuple[bool, int]:
    has_table_alone = section.artefact is not None and section.image is None
    return not has_table_alone, section.order


def _remove_earlier_files(reports: Path, section: Section) -> None:
    """Remove what an earlier state of the run had of a report; files of other names stay."""
    endings = ("_data.csv", ".pdf", *(f".{form}" for form in FORMATS))
    for place in ("tables", "figures"):
        for ending in endings:
            file = reports / place / f"{section.name}{ending}"
            if file not in section.files:
                file.unlink(missing_ok=True)


def write_some_reports(
    folder: Path,
    only: Sequence[str],
    formats: Collection[str] = FORMATS,
    progress: Progress = lambda *_: None,
    columns: Sequence[str] = (),
) -> list[Section]:
    """Make the reports that `only` names (none: all); the page and the other files stay.

    `formats` are endings. With `columns` tables have these alone, and nothing is written. Raises
    UserError for an unknown name, and if nothing is made.
    """
    chosen = find_reports(only) if only else names("reports")
    sections = _make_reports(folder, chosen, () if columns else formats, progress)
    if columns:
        return [_select_columns(section, columns) for section in sections]

    if not any(section.files or section.error for section in sections):
        reasons = []
        for section in sections:
            reason = section.skipped or "it has none of these formats"
            reasons.append(f"{section.name}: {reason}")
        tables = sorted(file.stem for file in folder.glob("reports/tables/*_table.md"))
        if tables:
            reasons.append(f"its results are in {', '.join(tables)}")
        raise UserError(f"Nothing was made of {folder}: {'; '.join(reasons)}.")
    return sections


def find_reports(only: Iterable[str]) -> list[str]:
    """Find reports by name (`arithmetic_table`, `table2`); UserError for an unknown one."""
    reports = []
    for word in only:
        reports += [word] if word in names("reports") else _find_by_number(word)
    return [*dict.fromkeys(reports)]


def _find_by_number(word: str) -> list[str]:
    """Find the reports of a table or figure of the paper, as `table2` or `figure3a`."""
    numbers = {}
    for report in entries("reports"):
        paper = str(getattr(report.plugin, "paper", ""))
        number = _NUMBER.match(paper)
        if number is not None:
            numbers[report.name] = _simplify(number[0])

    # `figure3` is also each of its panels, such as `figure3a` of "Figure 3 (a)".
    plain = _simplify(word)
    matching = [
        name for name, text in numbers.items() if plain in (text, text.rstrip("ab"))
    ]
    if not matching:
        known_words = {*names("reports"), *numbers.values()}
        hint = did_you_mean(word, known_words)
        raise UserError(f"Unknown report '{word}': {hint}")
    return matching


def _simplify(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _make_reports(
    folder: Path, chosen: Sequence[str], formats: Collection[str], progress: Progress
) -> list[Section]:
    """Make the reports of these names, in their order."""
    run = read_run(folder)
    require_plugins(run)
    # A killed command has left some out; a folder that may not be written goes without.
    if missing_comparisons(run):
        with suppress(UserError), RunDirectory(folder).locked():
            write_comparisons(read_run(folder))
        run = read_run(folder)

    sections = []
    for name in chosen:
        registered = entry("reports", name)
        # A report that could not be loaded has its error on the page, beside all others.
        if registered.plugin is None:
            error = f"{registered.error} (from {registered.origin})"
            sections.append(Section(name, name, "", error=error))
        else:
            report = cast(Report, registered.plugin())
            sections.append(make_report(run, report, formats))
        progress("make reports", len(sections), len(chosen))
    return sections


def make_report(
    run: RunFrames, report: Report, formats: Collection[str] = FORMATS
) -> Section:
    """Build a report and write its files, each whole or absent; the section keeps an error, and the
    reason of a skip. `table.attrs["title"]`, which may name a level, replaces the report's title.
    """
    from threadpoolctl import threadpool_limits

    order = int(getattr(report, "order", Section.order))
    section = Section(report.name, report.title, report.paper, order)
    try:
        # A report with parameters has files of its own for each of their values.
        if hasattr(report, "__dataclass_fields__"):
            section = replace(section, name=file_stem(canonical(report)))
        # Products are small: BLAS threads that wait for each other cost more than they save.
        with figure_style(), threadpool_limits(1, user_api="blas"):
            artefact = report.build(run)
        artefact = replace(artefact, notes=[*artefact.notes, *describe_old_code(run)])
        if artefact.table is not None:
            title = artefact.table.attrs.get("title") or section.title
            section = replace(section, title=str(title))
        drawn = replace(section, artefact=artefact)
        files = _write_artefact(run.path / "reports", drawn, artefact, formats)
    except ReportSkippedError as reason:
        return replace(section, skipped=str(reason))
    except (Exception, SystemExit) as problem:  # a plugin's code may exit
        trace = "".join(traceback.format_exception(problem))
        return replace(
            section, error=f"{type(problem).__name__}: {problem}", traceback=trace
        )

    # The figure and its data are in the files: kept, those of all reports fill the memory.
    without_figure = Artefact(artefact.caption, artefact.table, notes=artefact.notes)
    return replace(section, artefact=without_figure, files=tuple(files))


def _select_columns(section: Section, columns: Sequence[str]) -> Section:
    artefact = section.artefact
    if artefact is None or artefact.table is None:
        return section
    table = artefact.table
    for name in columns:
        if name not in table:
            hint = did_you_mean(name, map(str, table))
            raise UserError(f"Unknown column '{name}': {hint}")

    unique_columns = [*dict.fromkeys(columns)]
    chosen = replace(artefact, table=table[unique_columns])
    return replace(section, artefact=chosen)


def table_texts(section: Section) -> dict[str, str]:
    """Write the table of a section as text, by the ending of its file; nothing of a figure."""
    artefact = section.artefact
    if artefact is None or artefact.table is None:
        return {}

    table = artefact.table
    title = section.title
    notes = "\n".join(f"- {note}" for note in artefact.notes)
    paragraphs = [f"**{title}**", to_markdown(table).rstrip(), artefact.caption, notes]
    # Some titles are questions.
    stop = "" if title.endswith("?") else "."
    caption = f"{title}{stop} {artefact.caption}"
    label = f"tab:{section.name}"
    markdown = "\n\n".join(filter(None, paragraphs))
    return {
        "csv": to_csv(table),
        "md": f"{markdown}\n",
        "tex": to_latex(table, caption, label, artefact.notes),
    }


def _write_artefact(
    folder: Path, section: Section, artefact: Artefact, formats: Collection[str]
) -> list[Path]:
    """Write the files of one artefact below `folder` in these formats; returns them."""
    name = section.name
    by_ending = table_texts(section)
    texts = {f"tables/{name}.{ending}": text for ending, text in by_ending.items()}
    # The numbers stand beside what they are behind.
    if artefact.data is not None:
        place = f"figures/{name}.csv"
        if artefact.figure is None:
            place = f"tables/{name}_data.csv"
        texts[place] = to_csv(artefact.data)

    files = []
    for place, text in texts.items():
        file = folder / place
        if file.suffix[1:] in formats:
            write_text(file, text)
            files.append(file)
    if artefact.figure is not None:
        files += _draw(artefact.figure, folder, name, formats)
    return files


def _draw(
    figure: Figure, folder: Path, name: str, formats: Collection[str]
) -> list[Path]:
    """Write a figure in these formats; its parts are laid out once for all of them."""
    import matplotlib

    files = []
    with figure_style():
        engine = figure.get_layout_engine()
        # Laid out at the resolution of the files, on which the sizes of letters depend.
        if engine is not None:
            figure.set_dpi(matplotlib.rcParams["savefig.dpi"])
            engine.execute(figure)
            figure.set_layout_engine(None)

        for form, metadata in FIGURE_METADATA.items():
            if form not in formats:
                continue
            # A killed command leaves the earlier figure, and not half of a new one.
            file = folder / "figures" / f"{name}.{form}"
            with atomic(file) as temporary:
                figure.savefig(temporary, format=form, metadata=metadata)
            files.append(file)
    return files
