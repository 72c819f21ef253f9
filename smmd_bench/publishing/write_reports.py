"""The reports of a run: all of them with the page, or those that `--only` and `--format` name."""

from __future__ import annotations

import gc
import re
import time
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..contracts import Progress, Report
from ..errors import UserError, did_you_mean
from ..plugin_system.registry import entries, entry, load_plugin_file, names, plugin_files
from ..results.frames import read_run
from ..run.comparison import missing_comparisons, write_comparisons
from ..run.run_directory import RunDirectory
from .make_report import FORMATS, Section, make_report
from .page import write_page

if TYPE_CHECKING:
    from ..results.frames import RunFrames

SEVERAL, PROCESSES = 4, 4
"""Reports from which on further processes pay, and how many there are at most: each takes a second
to start, and holds what its report reads of the run."""
_NUMBER = re.compile(r"(?:Table|Figure) \d+(?: \([a-z]\))?")


def write_reports(folder: Path, progress: Progress = lambda *_: None) -> list[Section]:
    """Make every registered report of the run in `folder`, and its page.

    Tables come first, the verdict before the others. `progress` hears of the reports that are made.
    Raises UserError if the folder holds no run.
    """
    _compare_cells(folder)
    sections = _make_reports(folder, names("reports"), FORMATS, progress)
    sections.sort(key=lambda s: (s.artefact is None or s.image is not None, s.order))
    _remove_earlier(folder / "reports", sections)
    write_page(read_run(folder), sections)
    return sections


def write_some_reports(
    folder: Path,
    only: Sequence[str],
    formats: Collection[str] = FORMATS,
    progress: Progress = lambda *_: None,
) -> list[Section]:
    """Make the reports that `only` names (none: all); the page and the other files stay.

    A name is a report's or the paper's: `arithmetic_table`, `table2`, `figure3`. `formats` are
    endings. Raises UserError for an unknown name, and if nothing is made.
    """
    _compare_cells(folder)
    chosen = find_reports(only) if only else names("reports")
    sections = _make_reports(folder, chosen, formats, progress)
    if not any(section.files or section.error for section in sections):
        missing = "it has none of these formats"
        reasons = "; ".join(f"{s.name}: {s.skipped or missing}" for s in sections)
        raise UserError(f"Nothing was made of {folder}: {reasons}.")
    return sections


def find_reports(only: Iterable[str]) -> list[str]:
    """The reports with these names or numbers in the paper, each once.

    Raises UserError for an unknown name.
    """
    numbers: Mapping[str, str] | None = None
    found: dict[str, None] = {}
    for asked in only:
        known = [asked] if asked in names("reports") else []
        if not known:
            numbers = numbers or {e.name: _paper_name(e.plugin) for e in entries("reports")}
            plain = _plain(asked)
            known = [name for name, n in numbers.items() if n and plain in (n, n.rstrip("ab"))]
        if not known:
            spelled = [*names("reports"), *sorted(filter(None, (numbers or {}).values()))]
            raise UserError(f"Unknown report '{asked}': {did_you_mean(asked, spelled)}")
        found |= dict.fromkeys(known)
    return [*found]


def _paper_name(plugin: type | None) -> str:
    """`figure3a` of "Figure 3 (a)", `figure4` of "Figure 4 (Appendix C.1)"; empty: no number."""
    found = _NUMBER.match(str(getattr(plugin, "paper", "")))
    return _plain(found[0]) if found else ""


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _make_reports(
    folder: Path, chosen: Sequence[str], formats: Collection[str], progress: Progress
) -> list[Section]:
    """The reports of these names, in their order; which process makes one changes no byte."""
    from joblib import Parallel, cpu_count, delayed

    jobs = min(PROCESSES, cpu_count()) if len(chosen) >= SEVERAL else 1
    given = folder, time.time_ns(), tuple(plugin_files()), tuple(formats)
    sections: list[Section] = []
    with warnings.catch_warnings():
        # joblib replaces a process that has grown by 0.3 GiB, as reading a run makes it grow.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        parallel = Parallel(jobs, return_as="generator", batch_size=1)
        for section in parallel(delayed(_make_named)(name, *given) for name in chosen):
            sections.append(cast(Section, section))
            progress("make reports", len(sections), len(chosen))
    return sections


def _make_named(
    name: str, folder: Path, now: int, files: Sequence[Path], formats: Collection[str]
) -> Section:
    """Make a registered report, maybe in a process of its own."""
    for file in files:
        load_plugin_file(file)
    found = entry("reports", name)
    if found.plugin is None:
        return Section(name, name, "", error=f"{found.error} (from {found.origin})")
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)  # a figure is many objects: collections take a sixth of it
    try:
        return make_report(_run(folder, now), cast(Report, found.plugin()), formats)
    finally:
        gc.set_threshold(*before)


@lru_cache(maxsize=1)
def _run(folder: Path, now: int) -> RunFrames:
    """The run as it is `now`, read once in a process, which may live longer."""
    return read_run(folder)


def _compare_cells(folder: Path) -> None:
    """Write the comparisons that a killed command left out, unless a process works on the run."""
    if missing_comparisons(read_run(folder)):
        with suppress(UserError), RunDirectory(folder).locked():
            write_comparisons(read_run(folder))


def _remove_earlier(reports: Path, sections: Iterable[Section]) -> None:
    """Remove the files of these reports that were not written now; files of other names stay."""
    endings = [f".{form}" for form in (*FORMATS, "pdf")]
    for section in sections:
        for end in ("_data.csv", *endings):
            for file in (
                reports / place / f"{section.name}{end}" for place in ("tables", "figures")
            ):
                if file not in section.files:
                    file.unlink(missing_ok=True)
