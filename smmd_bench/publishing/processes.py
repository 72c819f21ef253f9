"""The reports of a run, one after the other, or those of a large run in several processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..contracts import Progress, Report
from ..plugin_system.registry import entry, load_plugin_file, plugin_files
from ..results.frames import read_run
from .publish import FORMATS, Section, made

if TYPE_CHECKING:
    from ..results.frames import RunFrames

MAKE = "make reports"
LARGE, SEVERAL = 40, 4
"""Measured cells and reports from which on processes pay: each takes seconds to start."""
PROCESSES = 4
"""Processes at most, whatever the cores: each holds what its report reads of the run."""


def made_reports(
    run: RunFrames, names: Sequence[str], progress: Progress, formats: Collection[str] = FORMATS
) -> list[Section]:
    """`made` of the registered reports with these names, in their order.

    Which process makes a report changes no byte of its files.
    """
    found: dict[str, Section] = {}

    def keep(name: str, section: Section) -> None:
        found[name] = section
        progress(MAKE, len(found), len(names))

    if names:
        progress(MAKE, 0, len(names))
    if len(names) >= SEVERAL and (run.cells["status"] == "done").sum() >= LARGE:
        _in_processes(run, names, formats, keep)
    for name in names:
        if name not in found:
            keep(name, made(run, _report(name), formats))
    return [found[name] for name in names]


def _in_processes(
    run: RunFrames,
    names: Sequence[str],
    formats: Collection[str],
    keep: Callable[[str, Section], None],
) -> None:
    """Keep the reports as they come; where a process is killed, the rest are left to be made."""
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    processes = min(PROCESSES, _cores())
    if processes == 1:
        return
    folder, files = run.path.resolve(), tuple(plugin_files())
    work = Parallel(processes, backend="loky", batch_size=1, return_as="generator_unordered")
    with warnings.catch_warnings():
        # loky replaces a process that has grown by 0.3 GiB, as reading a run makes it grow.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        try:
            jobs = (delayed(_made)(folder, name, files, formats) for name in names)
            for name, section in work(jobs):
                written = (run.path / path.relative_to(folder) for path in section.files)
                keep(name, replace(section, files=tuple(written)))
        except BrokenProcessPool:  # too little memory for several at a time, as a rule
            return
        finally:
            get_reusable_executor().shutdown(wait=True)
            _run.cache_clear()  # where joblib cannot start processes, it was read in this one


def _cores() -> int:
    """Those that this process may use, also in a container."""
    from joblib import cpu_count

    return int(cpu_count())


def _report(name: str) -> Report:
    plugin = entry("reports", name).plugin
    assert plugin is not None, name  # the caller has found that it can be used
    return cast(Report, plugin())


def _made(
    folder: Path, name: str, files: Sequence[Path], formats: Collection[str]
) -> tuple[str, Section]:
    """In a process of its own: the report, its plugins loaded as they were in the first one."""
    for file in files:
        load_plugin_file(file)
    return name, made(_run(folder), _report(name), formats)


@cache
def _run(folder: Path) -> RunFrames:
    """Read once in a process, which ends with the reports of the run."""
    return read_run(folder)
