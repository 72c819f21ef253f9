"""Progress for people: rich bars on a terminal, a plain line now and then elsewhere."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.table import Column
from rich.text import Text

from ..contracts import Progress

# A line for every step would fill a log.
_PLAIN_SECONDS = 15.0


@contextmanager
def show_progress(console: Console) -> Iterator[Progress]:
    """Yield `progress(what, done, total)`: shows what, how many of how many, rate, time left. With
    a total of 0, `what` is a message, and stands on a line of its own."""
    if not console.is_terminal:
        yield _Plain(console)
        return
    # A long label is cut, so that every bar keeps to one line.
    column = Column(no_wrap=True, overflow="ellipsis")
    with RichProgress(
        TextColumn("{task.description}", markup=False, table_column=column),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as bars:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            if not total:
                bars.console.print(what, markup=False)
                return
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield show


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "")


@dataclass
class _Plain:
    """begun: when each began, with how many, and when it was last said."""

    console: Console
    begun: dict[str, tuple[float, int, float]] = field(default_factory=dict)

    def __call__(self, what: str, done: int, total: int) -> None:
        time_now = time.monotonic()
        # What an earlier command has done counts in no rate.
        start, first, last_line = self.begun.pop(what, (time_now, done, -math.inf))
        if done < total:
            is_due = time_now - last_line >= _PLAIN_SECONDS
            self.begun[what] = start, first, time_now if is_due else last_line
            if not is_due:
                return

        line = f"{what}: {done} of {total}" if total else what
        seconds = time_now - start
        # Two reports that arrive at once would give a rate of thousands.
        if done > first and seconds > 0.05:
            rate = (done - first) / seconds
            line += f", {rate:.1f}/s"
            if done < total:
                line += f", {(total - done) / rate:.0f} s left"
        self.console.print(line, markup=False, soft_wrap=True)
        # A log is read while the command still runs.
        self.console.file.flush()
