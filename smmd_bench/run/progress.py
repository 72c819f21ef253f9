"""Progress for people: rich bars on a terminal, a plain line now and then elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.table import Column

from ..contracts import Progress

_PLAIN_SECONDS = 15.0
_SHORTEST = 0.05
"""Seconds: over less, a rate says how reports arrive and not how the work goes."""
_WIDE = 100


@contextmanager
def shown(console: Console) -> Iterator[Progress]:
    """Yield `progress(what, done, total)`: shows what, how many of how many, rate, time left.

    With a total of 0, `what` is a message, and stands on a line of its own.
    """
    if not console.is_terminal:
        yield _Plain(console)
        return
    wide = console.width >= _WIDE
    with RichProgress(
        TextColumn(
            "{task.description}",
            markup=False,  # a plugin's brackets are no markup
            table_column=Column(no_wrap=True, overflow="ellipsis"),
        ),
        BarColumn(bar_width=20 if wide else 8),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        *([TimeElapsedColumn()] if wide else []),
        TimeRemainingColumn(),
        console=console,
    ) as bars:
        yield _Bars(bars)


@dataclass
class _Bars:
    bars: RichProgress
    tasks: dict[str, TaskID] = field(default_factory=dict)

    def __call__(self, what: str, done: int, total: int) -> None:
        if not total:
            self.bars.console.print(what, markup=False)
            return
        if what not in self.tasks:
            self.tasks[what] = self.bars.add_task(what, total=total, rate="")
        task = self.tasks[what]
        speed = self.bars.tasks[self.bars.task_ids.index(task)].speed
        self.bars.update(task, completed=done, total=total, rate=f"{speed:.0f}/s" if speed else "")


@dataclass
class _Plain:
    console: Console
    started: dict[str, tuple[float, int]] = field(default_factory=dict)
    said: dict[str, float] = field(default_factory=dict)

    def __call__(self, what: str, done: int, total: int) -> None:
        if not total:
            self._print(what)
            return
        now = time.monotonic()
        start, first = self.started.setdefault(what, (now, done))
        if done < total and self.said.get(what) == float("inf"):  # the same again
            self.started[what] = (start, first) = (now, done)
            del self.said[what]
        finished = done >= total and self.said.get(what) != float("inf")
        if not finished and now - self.said.get(what, start - _PLAIN_SECONDS) < _PLAIN_SECONDS:
            return
        self.said[what] = float("inf") if done >= total else now
        rate = (done - first) / (now - start) if now - start > _SHORTEST else 0.0
        left = f", {(total - done) / rate:.0f} s left" if rate and done < total else ""
        speed = f", {rate:.1f}/s" if rate else ""
        self._print(f"{what}: {done} of {total}{speed}{left}")

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, soft_wrap=True)
        self.console.file.flush()
