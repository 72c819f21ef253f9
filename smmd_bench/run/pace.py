"""How long the jobs of a plan take, by what was measured of some of them.

A training takes a start and then so many seconds a step; the decoding of a cell a start of the
engine, which several cells share, and then so many seconds an example, its probes included. What
was not measured itself is assumed:

- losses and seeds of a model and task take as long as the mean of those that were measured;
- a model or task that was not measured takes as long for each weight and token as the others;
- every start takes as long as the shortest one, since a first one may wait for a disk or a queue;
- as many jobs run side by side as the most that did so far, each as fast as those did.
"""

import math
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heapreplace
from typing import Literal, NamedTuple

from ..contracts import Executor, Job, JobResult, Progress, Split
from ..experiment.cell import Cell
from .needs import ENOUGH, Lengths, estimate_resources, steps_of, trains
from .schedule import Missing, Schedule

WorkStage = Literal["train", "decode"]
_UNITS = {"train": ("train",), "decode": ("validate", "test")}
"""The first words of the progress that counts steps, or decoded examples."""
_SECONDS = 1.0  # between two sentences on the plan


class Work(NamedTuple):
    """The training of a cell, or its decoding. units: its steps or examples that are left. size: of
    one of these, the weights times the tokens that pass them. is_begun: a job has started on it."""

    stage: WorkStage
    model: str
    task: str
    units: int
    size: float
    is_begun: bool = False


@dataclass
class _Measured:
    """What was measured of a stage on a model and task."""

    units: float = 0
    size: float = 0
    seconds: float = 0


class Pace:
    """Seconds a step, an example and a start."""

    def __init__(self) -> None:
        self.measured: defaultdict[tuple[str, ...], _Measured] = defaultdict(_Measured)
        self.starts: dict[str, float] = {}

    def add(self, work: Work, seconds: float) -> None:
        """Take in how long some steps or examples took."""
        for kind in (work[:3], work[:1]):
            measured = self.measured[kind]
            measured.units += work.units
            measured.size += work.units * work.size
            measured.seconds += seconds

    def add_start(self, stage: str, seconds: float) -> None:
        """Take in how long a job took until its first step, or an engine until it ran."""
        self.starts[stage] = min(seconds, self.starts.get(stage, math.inf))

    def seconds_of(
        self, works: Iterable[Work], stage: WorkStage, side_by_side: int
    ) -> float | None:
        """How long the work of a stage takes on so many jobs at a time; None: that is not known."""
        start = self.starts.get(stage, 0.0)
        # Cells share an engine, and those that come last are spread over several.
        if stage == "decode":
            start /= ENOUGH

        seconds = []
        for work in works:
            if work.stage != stage:
                continue
            alone = self._seconds_alone(work)
            if alone is None:
                return None
            seconds.append(alone if work.is_begun else start + alone)

        # The longest first, each where most is done: seven trainings on four GPUs take two rounds.
        loads = [0.0] * side_by_side
        for longest in sorted(seconds, reverse=True):
            heapreplace(loads, loads[0] + longest)
        return max(loads)

    @property
    def sentence(self) -> str:
        """The seconds a unit of each stage, over all that was measured."""
        nouns = {"train": "step", "decode": "decoded example"}
        clauses = []
        for stage, noun in nouns.items():
            measured = self.measured.get((stage,))
            if measured is not None:
                seconds = measured.seconds / measured.units
                clauses.append(f"{seconds:.3g} s a {noun}")
        return f"Measured: {', '.join(clauses)}."

    def _seconds_alone(self, work: Work) -> float | None:
        measured = self.measured.get(work[:3])
        if measured is not None:
            return work.units * measured.seconds / measured.units
        measured = self.measured.get(work[:1])
        if measured is not None:
            return work.units * work.size * measured.seconds / measured.size
        return None


def times_of(
    works: Collection[Work], pace: Pace, side_by_side: Iterable[int]
) -> dict[int, float]:
    """The seconds of a plan by how many of its jobs run side by side, those of decoding only where
    they are known; empty: nothing is known."""
    times = {}
    for jobs in side_by_side:
        training = pace.seconds_of(works, "train", jobs)
        # A plan that trains nothing has nothing that a receipt could tell.
        if training:
            times[jobs] = training + (pace.seconds_of(works, "decode", jobs) or 0.0)
    return times


def works_of(
    cells: Missing, lengths: Lengths, done: Mapping[str, Mapping[Cell, int]] = {}
) -> list[Work]:
    """What is to be done for cells that lack a stage. Two that share a training count it once.

    done: by stage, how many steps or examples the jobs that run have done of their cells.
    """
    works = []
    trainings = set()
    for cell, lacks in cells.items():
        stages: dict[WorkStage, int] = {}
        if lacks == "train" and trains(cell) and cell.parts["train"] not in trainings:
            trainings.add(cell.parts["train"])
            stages["train"] = steps_of(cell)
        if lacks != "measure":
            stages["decode"] = _examples_of(cell)

        for stage, units in stages.items():
            done_units = done.get(stage, {}).get(cell)
            left = max(0, units - (done_units or 0))
            work = work_of(cell, stage, left, lengths)
            works.append(work._replace(is_begun=done_units is not None))
    return works


def work_of(cell: Cell, stage: WorkStage, units: int, lengths: Lengths) -> Work:
    """So many steps or examples of a cell."""
    split: Split = "train" if stage == "train" else "test"
    tokens = lengths.get((cell.model, cell.task, split), 1.0)
    # A step passes a whole batch.
    if stage == "train":
        tokens *= cell.recipe.batch_size
    size = cell.card.parameter_count() * tokens
    return Work(stage, cell.model, cell.task, units, size)


def _examples_of(cell: Cell) -> int:
    """How many examples are decoded for a cell, those of the validation once an epoch."""
    count = 0
    if "validation" in cell.splits:
        count += cell.size("validation") * cell.recipe.epochs
    if "test" in cell.splits:
        count += cell.size("test")
    return count


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
        done = 0
        for key, cell in self.trainings.items():
            if key in todo:
                continue
            if self.schedule.run.current(cell).receipt is None:
                failed += 1
            else:
                done += 1

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
                    of_cell = min(units, _examples_of(cell))
                done.setdefault(stage, {})[cell] = of_cell
                units -= of_cell
        return done

    def _work_of(self, name: str, units: int) -> Work:
        """So many steps or examples of a job, by its name."""
        cell = self.schedule.cells[name][0]
        stage: WorkStage = "train" if name.startswith("train-") else "decode"
        return work_of(cell, stage, units, self.lengths)


def span(seconds: float) -> str:
    """A time as people say it, in its two largest units: 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"


def count_side_by_side(runner: Executor, cells: Iterable[Cell]) -> int:
    """How many trainings an executor runs at a time: on a CPU a large one has all cores."""
    has_cores_alone = not getattr(runner, "gpus", True)
    needs = [estimate_resources("train", cell).threads for cell in cells]
    return 1 if has_cores_alone and None in needs else runner.slots


def hour_after(seconds: float) -> str:
    """The hour of the clock after so many seconds, with the day where that is another one."""
    now = datetime.now()
    end = now + timedelta(seconds=seconds)
    return end.strftime("%H:%M" if end.date() == now.date() else "%a %H:%M")
