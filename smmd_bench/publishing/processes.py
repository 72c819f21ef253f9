"""The reports of a run, one after the other, or those of a large run in several processes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..contracts import Progress, Report
from ..plugin_system.registry import entry, load_plugin_file, plugin_files
from ..results.frames import read_run
from .make_report import FORMATS, Section, make_report

if TYPE_CHECKING:
    from ..results.frames import RunFrames

LARGE, SEVERAL = 40, 4
"""Measured cells and reports from which on processes pay: each takes seconds to start."""
PROCESSES = 4
"""Processes at most, whatever the cores: each holds what its report reads of the run."""


def make_reports(
    run: RunFrames, names: Sequence[str], progress: Progress, formats: Collection[str] = FORMATS
) -> list[Section]:
    """`make_report` of the registered reports with these names, in their order.

    Which process makes a report changes no byte of its files.
    """
    found: dict[str, Section] = {}
    if names:
        progress("make reports", 0, len(names))
    large = len(names) >= SEVERAL and (run.cells["status"] == "done").sum() >= LARGE
    for make in (_in_processes, _in_order) if large else (_in_order,):
        for name, section in make(run, [name for name in names if name not in found], formats):
            found[name] = section
            progress("make reports", len(found), len(names))
    return [found[name] for name in names]


def _in_order(
    run: RunFrames, names: Sequence[str], formats: Collection[str]
) -> Iterator[tuple[str, Section]]:
    for name in names:
        yield name, make_report(run, _report(name), formats)


def _in_processes(
    run: RunFrames, names: Sequence[str], formats: Collection[str]
) -> Iterator[tuple[str, Section]]:
    """The reports as they are finished; if a process is killed, the rest are missing."""
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
            for name, section in work(delayed(_made)(folder, n, files, formats) for n in names):
                paths = (run.path / path.relative_to(folder) for path in section.files)
                yield name, replace(section, files=tuple(paths))
        except BrokenProcessPool:  # mostly too little memory for several at a time
            return
        finally:
            get_reusable_executor().shutdown(wait=True)
            _run.cache_clear()  # where joblib cannot start processes, this one has read the run


def _cores() -> int:
    """The cores that this process may use, also in a container."""
    from joblib import cpu_count

    return int(cpu_count())


def _report(name: str) -> Report:
    plugin = entry("reports", name).plugin
    assert plugin is not None, name  # the caller has checked that it can be used
    return cast(Report, plugin())


def _made(
    folder: Path, name: str, files: Sequence[Path], formats: Collection[str]
) -> tuple[str, Section]:
    """In a process of its own: the report, with the plugins that the first process has loaded."""
    for file in files:
        load_plugin_file(file)
    return name, make_report(_run(folder), _report(name), formats)


@cache
def _run(folder: Path) -> RunFrames:
    """The run, read once in a process, which ends with its reports."""
    return read_run(folder)
