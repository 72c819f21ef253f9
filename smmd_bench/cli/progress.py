"""Progress for people: rich bars on a terminal, a plain line now and then elsewhere."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, RenderableType
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
_PLAN_SECONDS = 60.0


@contextmanager
def show_progress(console: Console) -> Iterator[Progress]:
    """Yield `progress(what, done, total)`: shows what, how many of how many, rate, time left. With
    a total of 0, `what` is a message, and stands on a line of its own. Its `show_plan(sentence)`
    shows how far the whole plan is, on a terminal above the bars."""
    if not console.is_terminal:
        yield _Plain(console)
        return
    # A long label is cut, so that every bar keeps to one line.
    column = Column(no_wrap=True, overflow="ellipsis")
    with _Bars(
        TextColumn("{task.description}", markup=False, table_column=column),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as bars:
        yield bars


class _Bars(RichProgress):
    """A bar for each thing that goes on, below a line on the whole plan."""

    def __init__(self, *columns: ProgressColumn, console: Console) -> None:
        self.plan = ""
        self.by_name: dict[str, TaskID] = {}
        super().__init__(*columns, console=console)

    def __call__(self, what: str, done: int, total: int) -> None:
        if not total:
            self.console.print(what, markup=False)
            return
        if what not in self.by_name:
            self._remove_finished()
            self.by_name[what] = self.add_task(what, total=total)
        self.update(self.by_name[what], completed=done, total=total)

    def show_plan(self, sentence: str) -> None:
        self.plan = sentence

    def get_renderables(self) -> Iterator[RenderableType]:
        if self.plan:
            yield Text(self.plan, style="bold", no_wrap=True, overflow="ellipsis")
        yield from super().get_renderables()

    def _remove_finished(self) -> None:
        """Make room for a bar: rich cuts those off that a terminal has no line for."""
        room = self.console.height - 3
        finished = [task for task in self.tasks if task.finished]
        for task in finished[: max(0, len(self.tasks) - room)]:
            self.remove_task(task.id)
            del self.by_name[task.description]


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "")


@dataclass
class _Plain:
    """begun: when each began, with how many, and when it was last said."""

    console: Console
    begun: dict[str, tuple[float, int, float]] = field(default_factory=dict)
    plan: tuple[str, str, float] = "", "", -math.inf

    def show_plan(self, sentence: str) -> None:
        """Print it where a training has ended, and now and then."""
        trainings, _, _ = sentence.partition(", about ")
        last_trainings, last_sentence, last_line = self.plan
        time_now = time.monotonic()
        is_due = time_now - last_line >= _PLAN_SECONDS
        if trainings != last_trainings or (is_due and sentence != last_sentence):
            self.plan = trainings, sentence, time_now
            self._print(sentence)

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
        self._print(line)

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, soft_wrap=True)
        # A log is read while the command still runs.
        self.console.file.flush()
