"""The reports of a run: all of them with the page, or those that `--only` and `--format` name.

RUN/reports/tables/NAME.csv, .md, .tex    the table as people read it
RUN/reports/tables/NAME_data.csv          the numbers behind it, in full (a report without figure)
RUN/reports/figures/NAME.png, .svg        the figure; .pdf where it is asked for
RUN/reports/figures/NAME.csv              the numbers behind it

The files follow from the run alone, byte for byte: they hold no dates and no random names.
"""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from ..contracts import Artefact, Progress, Report
from ..errors import UserError, did_you_mean
from ..plugin_system.parameters import canonical
from ..plugin_system.registry import Group, entries, entry, names, plugin_files, points
from ..results.frames import RunFrames, read_run
from ..results.summary import describe_old_code, require_plugins
from ..run.comparison import missing_comparisons, write_comparisons
from ..run.run_directory import HELD, RunDirectory
from ..storage.addresses import address
from ..storage.files import atomic, files_of, read_own_json, write_json, write_text
from .page import Section, write_page
from .style import figure_style, file_stem
from .tables import as_text, to_csv, to_latex, to_markdown

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
MADE = "made.json"  # beside reports of which none failed: the state that they were made of
_NUMBER = re.compile(r"(?:Table|Figure) \d+(?: \([a-z]\))?")


def write_reports(
    folder: Path, progress: Progress = lambda *_: None, *, anew: bool = True
) -> list[Section]:
    """Make every registered report of the run in `folder`, and its page.

    Tables come first, the verdict before the others. `progress` hears of the reports that are made.
    anew: also if nothing has changed since they were made; else the first table alone is returned
    then, as it was. Raises UserError if the folder holds no run.
    """
    made = folder / "reports" / MADE
    known = {} if anew else read_own_json(made) or {}
    if known.get("state") == _state(folder):
        return [_section_again(**said) for said in known["shown"]]
    sections = _make_reports(folder, names("reports"), FORMATS, progress)
    sections.sort(key=lambda s: (s.artefact is None or s.image is not None, s.order))
    for section in sections:  # files of an earlier state go, and those of other names stay
        ends = ("_data.csv", ".pdf", *(f".{form}" for form in FORMATS))
        for place in ("tables", "figures"):
            written = {folder / "reports" / place / f"{section.name}{end}" for end in ends}
            for file in written - {*section.files}:
                file.unlink(missing_ok=True)
    write_page(read_run(folder), sections)
    made.unlink(missing_ok=True)
    if not any(section.error for section in sections):
        shown = [_said(section) for section in sections if section.table is not None][:1]
        write_json(made, {"state": _state(folder), "shown": shown})
    return sections


def _said(section: Section) -> dict[str, Any]:
    assert section.table is not None
    attrs = {name: [*section.table.attrs.get(name, ())] for name in ("bold", "values", "optional")}
    table = {**as_text(section.table).to_dict("split"), "attrs": attrs}  # what a terminal shows
    names = ("name", "title", "paper", "caption")
    return {**{name: getattr(section, name) for name in names}, "table": table}


def _section_again(
    name: str, title: str, paper: str, caption: str, table: Mapping[str, Any]
) -> Section:
    frame = pd.DataFrame(table["data"], table["index"], table["columns"])
    frame.attrs = table["attrs"]
    return Section(name, title, paper, artefact=Artefact(caption, frame))


def _state(folder: Path) -> str:
    """Sizes and times of a run's results and reports, of the code, and of what is installed."""
    files = [*files_of(folder / stage for stage in HELD), *plugin_files()]
    for part in ("manifest.json", "failed/*", "reports/**/*.*"):
        files += (file for file in folder.glob(part) if file.name != MADE)

    files += [Path(sysconfig.get_path("purelib")), *Path(__file__).parents[1].rglob("*.*")]
    groups: tuple[Group, ...] = ("reports", "tasks", "losses")
    modules = {point.module for group in groups for point in points(group).values()}
    for module in modules:
        with suppress(Exception):  # of a plugin that cannot be imported
            files += Path(find_spec(module).origin).parent.glob("*.*")  # type: ignore

    state: dict[str, list[int]] = {}
    for file in files:
        if file.suffix != ".pyc":
            now = file.lstat()
            # A date can be set back, the time of the last change cannot.
            state[str(file.absolute())] = [now.st_size, now.st_mtime_ns, now.st_ctime_ns]
    return address(state)


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
    sections = [_with_columns(section, columns) for section in sections]
    if not any(section.files or section.error or columns for section in sections):
        reasons = (f"{s.name}: {s.skipped or 'it has none of these formats'}" for s in sections)
        raise UserError(f"Nothing was made of {folder}: {'; '.join(reasons)}.")
    return sections


def find_reports(only: Iterable[str]) -> list[str]:
    """Reports by name (`arithmetic_table`, `table2`), each once; UserError for an unknown one."""
    found: dict[str, None] = {}
    for asked in only:
        known = [asked]
        if asked not in names("reports"):
            papers = ((e.name, str(getattr(e.plugin, "paper", ""))) for e in entries("reports"))
            found_in = ((name, _NUMBER.match(text)) for name, text in papers)
            numbers = {name: _plain(number[0]) for name, number in found_in if number}
            plain = _plain(asked)  # `figure3a` of "Figure 3 (a)"
            known = [name for name, n in numbers.items() if plain in (n, n.rstrip("ab"))]
            if not known:
                hint = did_you_mean(asked, {*names("reports"), *numbers.values()})
                raise UserError(f"Unknown report '{asked}': {hint}")
        found |= dict.fromkeys(known)
    return [*found]


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _make_reports(
    folder: Path, chosen: Sequence[str], formats: Collection[str], progress: Progress
) -> list[Section]:
    """The reports of these names, in their order."""
    run, sections = read_run(folder), []
    require_plugins(run)
    if missing_comparisons(run):  # which a killed command left out
        with suppress(UserError), RunDirectory(folder).locked():
            write_comparisons(read_run(folder))
        run = read_run(folder)
    for name in chosen:
        found = entry("reports", name)
        if found.plugin is None:
            error = f"{found.error} (from {found.origin})"
            sections.append(Section(name, name, "", error=error))
        else:
            report = cast(Report, found.plugin())
            sections.append(make_report(run, report, formats))
        progress("make reports", len(sections), len(chosen))
    return sections


def make_report(run: RunFrames, report: Report, formats: Collection[str] = FORMATS) -> Section:
    """Build a report and write its files, each whole or absent; the section keeps an error.
    `table.attrs["title"]`, such as one that names a level, replaces the report's title."""
    from threadpoolctl import threadpool_limits

    order = int(getattr(report, "order", Section.order))
    section = Section(report.name, report.title, report.paper, order)
    try:
        if hasattr(report, "__dataclass_fields__"):
            section = replace(section, name=file_stem(canonical(report)))
        if (reason := report.skip(run)) is not None:
            return replace(section, skipped=reason)
        # Products are small: BLAS threads that wait for each other cost more than they save.
        with figure_style(), threadpool_limits(1, user_api="blas"):
            artefact = report.build(run)
        artefact = replace(artefact, notes=[*artefact.notes, *describe_old_code(run)])
        title = "" if artefact.table is None else artefact.table.attrs.get("title")
        section = replace(section, title=str(title or section.title))
        files = _write_artefact(run.path / "reports", section, artefact, formats)
    except (Exception, SystemExit) as problem:  # a plugin's code may exit
        trace = "".join(traceback.format_exception(problem))
        return replace(section, error=f"{type(problem).__name__}: {problem}", traceback=trace)
    shown = Artefact(artefact.caption, artefact.table, notes=artefact.notes)
    return replace(section, artefact=shown, files=tuple(files))


def _with_columns(section: Section, columns: Sequence[str]) -> Section:
    if section.artefact is None or (table := section.table) is None or not columns:
        return section
    for name in (name for name in columns if name not in table):
        raise UserError(f"Unknown column '{name}': {did_you_mean(name, map(str, table))}")
    table = table[[*dict.fromkeys(columns)]]
    return replace(section, artefact=replace(section.artefact, table=table))


def table_texts(section: Section) -> dict[str, str]:
    """The table of a section by the ending of its file; of a figure alone nothing."""
    if (artefact := section.artefact) is None or (table := artefact.table) is None:
        return {}
    title, notes = section.title, "\n".join(f"- {note}" for note in artefact.notes)
    parts = [f"**{title}**", to_markdown(table).rstrip(), artefact.caption, notes]
    caption = f"{title}{'' if title.endswith('?') else '.'} {artefact.caption}"
    latex = to_latex(table, caption, f"tab:{section.name}", artefact.notes)
    markdown = "\n\n".join(filter(None, parts)) + "\n"
    return {"csv": to_csv(table), "md": markdown, "tex": latex}


def _write_artefact(
    folder: Path, section: Section, artefact: Artefact, formats: Collection[str]
) -> list[Path]:
    """Write the files of one artefact below `folder` in these formats; returns them."""
    name, found = section.name, table_texts(replace(section, artefact=artefact))
    texts = {f"tables/{name}.{ending}": text for ending, text in found.items()}
    if artefact.data is not None:
        place = f"figures/{name}.csv" if artefact.figure else f"tables/{name}_data.csv"
        texts[place] = to_csv(artefact.data)
    wanted = {folder / p: text for p, text in texts.items() if p.rpartition(".")[2] in formats}
    for file, text in wanted.items():
        write_text(file, text)
    drawn = [] if artefact.figure is None else _draw(artefact.figure, folder, name, formats)
    return [*wanted, *drawn]


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
