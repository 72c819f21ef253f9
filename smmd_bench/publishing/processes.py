"""The reports of a run, shared between this process and a helper for each further core."""

from __future__ import annotations

import gc
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

from ..contracts import Progress, Report
from ..plugin_system.registry import entry, load_plugin_file, plugin_files
from ..results.frames import read_run
from .make_report import FORMATS, Section, make_report

if TYPE_CHECKING:
    from ..results.frames import RunFrames

    Made = SimpleQueue[tuple[str, Section]]

SEVERAL = 4
"""Reports from which on helpers pay: each takes a second to start."""
PROCESSES = 4
"""Processes at most, whatever the cores: each holds what its report reads of the run."""
RARELY = (50_000, 20, 20)
"""Thresholds of the garbage collector: a figure is many small objects, and each collection looks
at those of every library too."""


def make_reports(
    run: RunFrames, names: Sequence[str], progress: Progress, formats: Collection[str] = FORMATS
) -> list[Section]:
    """`make_report` of the registered reports with these names, in their order.

    Which process makes a report changes no byte of its files.
    """
    found: dict[str, Section] = {}
    if names:
        progress("make reports", 0, len(names))
    helpers = min(PROCESSES, _cores()) - 1 if len(names) >= SEVERAL else 0
    with _rare_collections():
        for count in (helpers, 0):  # a helper that was killed has left something out
            left = [name for name in names if name not in found]
            for name, section in _made(run, left, formats, count):
                found[name] = section
                progress("make reports", len(found), len(names))
    return [found[name] for name in names]


def _made(
    run: RunFrames, names: Sequence[str], formats: Collection[str], helpers: int
) -> Iterator[tuple[str, Section]]:
    """The reports as they are made: this process takes from the front, helpers from the back.

    The names are turned by a third: then those whose reports import torch, which are in the middle
    of the alphabet, are mostly taken by one process, and not where front and back meet.
    """
    left = deque(names)
    left.rotate(-(len(names) // 3) if helpers else 0)
    made: Made = SimpleQueue()
    with _helpers(run, left, made, formats, helpers):
        while (name := _taken(left.popleft)) is not None:
            yield name, make_report(run, _report(name), formats)
            while not made.empty():
                yield made.get()
    while not made.empty():
        yield made.get()


@contextmanager
def _helpers(
    run: RunFrames, left: deque[str], made: Made, formats: Collection[str], count: int
) -> Iterator[None]:
    """Inside, so many processes make reports; at the end those that are begun are finished."""
    with ExitStack() as stack:
        try:
            executor = _processes(count) if count else None
        except (ImportError, NotImplementedError, OSError):  # a system without semaphores
            executor = None
        if executor is not None:
            stack.callback(executor.shutdown, kill_workers=True)  # idle by then: 0.3 s sooner
            stack.enter_context(warnings.catch_warnings())
            # loky replaces a process that has grown by 0.3 GiB, as reading a run makes it grow.
            warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
            threads = stack.enter_context(ThreadPoolExecutor(count))
            for _ in range(count):
                threads.submit(_help, executor, run.path, left, made, formats)
        stack.callback(left.clear)  # of an interrupted command nothing more is begun
        yield


def _processes(count: int) -> Any:
    """An executor whose processes start without running the caller's script again."""
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(count)


def _help(
    executor: Executor, path: Path, left: deque[str], made: Made, formats: Collection[str]
) -> None:
    """Let a process make reports, one after the other, while there are some."""
    folder, files = path.resolve(), tuple(plugin_files())
    with suppress(BrokenProcessPool):  # mostly too little memory for several at a time
        executor.submit(_begin, folder, files).result()
        while (name := _taken(left.pop)) is not None:
            section = executor.submit(_remote, folder, name, formats).result()
            paths = (path / file.relative_to(folder) for file in section.files)
            made.put((name, replace(section, files=tuple(paths))))


def _taken(take: Callable[[], str]) -> str | None:
    """The name of a report to make; None if all are taken."""
    try:
        return take()
    except IndexError:
        return None


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Inside, garbage is collected rarely."""
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _cores() -> int:
    """The cores that this process may use, also in a container."""
    from joblib import cpu_count

    return int(cpu_count())


def _report(name: str) -> Report:
    plugin = entry("reports", name).plugin
    assert plugin is not None, name  # the caller has checked that it can be used
    return cast(Report, plugin())


def _begin(folder: Path, files: Sequence[Path]) -> None:
    """In a process of its own: what the reports need, so that loky counts it as no growth."""
    for file in files:
        load_plugin_file(file)
    _run(folder)
    gc.set_threshold(*RARELY)


def _remote(folder: Path, name: str, formats: Collection[str]) -> Section:
    return make_report(_run(folder), _report(name), formats)


@cache
def _run(folder: Path) -> RunFrames:
    """The run, read once in a process, which ends with its reports."""
    return read_run(folder)
