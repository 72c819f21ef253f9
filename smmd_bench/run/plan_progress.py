"""How far the whole plan of a run is, by what its jobs say."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..contracts import Job, JobResult, Progress
from ..experiment.cell import Cell
from .needs import Lengths, trains
from .pace import (
    Pace,
    Work,
    WorkStage,
    examples_of,
    hour_after,
    span,
    work_of,
    works_of,
)
from .schedule import Schedule

_UNITS = {"train": ("train",), "decode": ("validate", "test")}
"""The first words of the progress that counts steps, or decoded examples."""
_SECONDS = 1.0  # between two sentences on the plan


@dataclass
class _Clock:
    """A job that runs, or has run. begun: when its first step ended, or its engine ran; before: the
    steps up to then, which a resumed training has not all done itself. units: by what it says, how
    many steps or examples it has done."""

    taken: float
    begun: float | None = None
    before: int = 0
    last: float = 0.0
    units: dict[str, int] = field(default_factory=dict)

    @property
    def units_since(self) -> int:
        """Its steps or examples since it was begun."""
        return max(0, sum(self.units.values()) - self.before)


class PlanProgress:
    """Progress of the jobs of a run, with a sentence on the whole plan beside it.

    `progress` shows what the jobs say, and, where it has a method `show_plan`, the sentence. Until
    steps are measured that says how many trainings are done.
    """

    def __init__(
        self,
        schedule: Schedule,
        cells: Iterable[Cell],
        progress: Progress,
        lengths: Lengths,
    ) -> None:
        self.schedule, self.progress, self.lengths = schedule, progress, lengths
        self.trainings = {cell.parts["train"]: cell for cell in cells if trains(cell)}
        self.show_plan = getattr(progress, "show_plan", None)
        self.clocks: dict[str, _Clock] = {}
        self.side_by_side = 1
        self.with_receipt: set[str] = set()
        self.counted = self._count_trainings()
        self._show()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show the progress of a job."""
        self.progress(what, done, total)

    def hear(self, job: Job, what: str, done: int, total: int) -> None:
        """Take in what a job says."""
        moment = time.monotonic()
        taken = self.schedule.taken[job.name]
        clock = self.clocks.get(job.name)
        # A job that was killed beside others begins again.
        if clock is None or clock.taken != taken:
            clock = self.clocks[job.name] = _Clock(taken)
        # Probes, which count as no examples, take a share of their time.
        clock.last = moment
        counts = what.partition(" ")[0] in _UNITS.get(job.stage, ()) and total
        if counts:
            clock.units[what] = done
        # A job that was killed in its probes begins with these.
        if job.stage == "decode" and done and what != "start engine":
            self.schedule.hear_answers(job)

        if clock.begun is None and done:
            # A first step is slow, and a resumed training has many behind it.
            if job.stage == "train" and counts:
                clock.begun, clock.before = moment, done
            elif what == "start engine":
                clock.begun = moment

        running = self.clocks.keys() & self.schedule.running.keys()
        self.side_by_side = max(self.side_by_side, len(running))
        if moment - self.shown >= _SECONDS:
            self._show()

    def end(self, result: JobResult) -> None:
        """Take in how a job ended."""
        self.schedule.end(result)
        self.counted = self._count_trainings()
        self._show()

    def pace(self) -> Pace:
        """What the jobs have shown so far."""
        pace = Pace()
        for name, clock in self.clocks.items():
            if clock.begun is None:
                continue
            work = self._work_of(name, clock.units_since)
            pace.add_start(work.stage, clock.begun - clock.taken)
            if work.units:
                pace.add(work, clock.last - clock.begun)
        return pace

    def _show(self) -> None:
        self.shown = time.monotonic()
        if self.show_plan is not None and self.trainings:
            left = self._describe_left() if self.schedule.missing else ""
            self.show_plan(f"Plan: {self.counted}{left}")

    def _count_trainings(self) -> str:
        todo = set()
        for cell, lacks in self.schedule.missing.items():
            if lacks == "train":
                todo.add(cell.parts["train"])
        failed = 0
        for key in self.trainings.keys() - todo - self.with_receipt:
            # A receipt stays as it is, so that it is read once.
            if self.schedule.run.current(self.trainings[key]).receipt is None:
                failed += 1
            else:
                self.with_receipt.add(key)

        done = len(self.with_receipt - todo)
        counted = f"{done} of {len(self.trainings)} trainings done"
        return counted + (f", {failed} failed or skipped" if failed else "")

    def _describe_left(self) -> str:
        works = works_of(self.schedule.missing, self.lengths, self._find_done())
        pace = self.pace()
        training = pace.seconds_of(works, "train", self.side_by_side)
        decoding = pace.seconds_of(works, "decode", self.side_by_side)
        if training and decoding is None:
            return f", about {span(training)} of training left"
        if training is None or not decoding:
            return ""
        left = training + decoding
        return f", about {span(left)} left, ends about {hour_after(left)}"

    def _find_done(self) -> dict[str, dict[Cell, int]]:
        """Find, by stage, how many steps or examples the jobs that run have done of their cells."""
        done: dict[str, dict[Cell, int]] = {"train": {}, "decode": {}}
        for name in self.schedule.running.keys() & self.clocks.keys():
            stage = name.partition("-")[0]
            units = sum(self.clocks[name].units.values())
            # An engine takes its cells one after the other.
            for cell in self.schedule.cells[name]:
                of_cell = units
                if stage == "decode":
                    of_cell = min(units, examples_of(cell))
                done.setdefault(stage, {})[cell] = of_cell
                units -= of_cell
        return done

    def _work_of(self, name: str, units: int) -> Work:
        """So many steps or examples of a job, by its name."""
        cell = self.schedule.cells[name][0]
        stage: WorkStage = "train" if name.startswith("train-") else "decode"
        return work_of(cell, stage, units, self.lengths)
