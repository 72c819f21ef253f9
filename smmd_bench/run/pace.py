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
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import heapreplace
from typing import Literal, NamedTuple

from ..contracts import Executor, Split
from ..experiment.cell import Cell
from .decodable import ENOUGH
from .needs import Lengths, estimate_resources, steps_of, trains
from .schedule import Missing

WorkStage = Literal["train", "decode"]


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
            stages["decode"] = examples_of(cell)

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


def examples_of(cell: Cell) -> int:
    """How many examples are decoded for a cell, those of the validation once an epoch."""
    count = 0
    if "validation" in cell.splits:
        count += cell.size("validation") * cell.recipe.epochs
    if "test" in cell.splits:
        count += cell.size("test")
    return count


def count_side_by_side(runner: Executor, cells: Iterable[Cell]) -> int:
    """How many trainings an executor runs at a time: on a CPU a large one has all cores."""
    has_cores_alone = not getattr(runner, "gpus", True)
    needs = [estimate_resources("train", cell).threads for cell in cells]
    return 1 if has_cores_alone and None in needs else runner.slots


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


def hour_after(seconds: float) -> str:
    """The hour of the clock after so many seconds, with the day where that is another one."""
    now = datetime.now()
    end = now + timedelta(seconds=seconds)
    return end.strftime("%H:%M" if end.date() == now.date() else "%a %H:%M")
