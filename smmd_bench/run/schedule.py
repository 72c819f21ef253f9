"""Which job of a run comes next: what is missing, and has what it is made from.

A cell is trained; then one job validates its epochs, tests the best and measures that, with other
cells of the same base: one start of the engine serves them. Such a job starts as soon as enough
cells are trained, so that few epochs lie on the disk at a time, or when no more are to come. The
untuned base goes first, and nothing is trained on it before it answers: an engine that cannot run a
model says so at once. A tuned cell waits for its trials.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ..contracts import Job, JobQueue, JobResult
from ..decoding.selection import select_weights
from ..errors import CellSkippedError, UserError
from ..experiment.cell import Cell
from ..plugin_system.registry import plugin_files
from ..storage.cell import failure_file
from .cell_json import cell_to_json
from .decodable import Base, DecodableBase, base_of
from .needs import estimate_resources
from .run_directory import RunDirectory, Stage, record_failure

# One job for all would leave slots idle, and one a cell start too many processes.
MEASURED_AT_A_TIME = 25

Missing = dict[Cell, Stage]
"""Unfinished cells, and the first stage that each of them lacks."""
Work = tuple[Stage, list[Cell]]


class Schedule(JobQueue):
    """The jobs for what cells lack; `end` takes in a result and finds what can begin then.

    slots: jobs that can run at the same time. track: see `smmd_bench.training.tracking`.
    """

    def __init__(
        self,
        run: RunDirectory,
        cells: Sequence[Cell],
        slots: int,
        track: str | None = None,
    ) -> None:
        super().__init__()
        self.run = run
        self.slots = slots
        self.track = track
        self.has_several_places = len({(cell.model, cell.task) for cell in cells}) > 1
        self.todo = [*cells]
        self.missing: Missing = {}
        self.cells: dict[str, list[Cell]] = {}
        self.running: dict[str, list[Cell]] = {}
        self.taken: dict[str, float] = {}  # when each job was begun
        self.answering: set[Base] = set()

        # Another command tries failed cells again; a loss that cannot apply stays skipped.
        for cell in cells:
            if not run.failure(cell).get("skipped"):
                failure_file(run.path, run.current(cell).key).unlink(missing_ok=True)
        self._update()

    def take(self, fits: Callable[[Job], bool] | None = None) -> Job | None:
        """Take the first job (that fits) off the queue."""
        job = super().take(fits)
        if job is not None:
            self.running[job.name] = self.cells[job.name]
            self.taken[job.name] = time.monotonic()
        return job

    def hear_answers(self, job: Job) -> None:
        """Take in that a job decodes: trainings on its base may begin beside it."""
        base = base_of(self.cells[job.name][0])
        if base not in self.answering:
            self.answering.add(base)
            self._update()

    def end(self, result: JobResult) -> None:
        """Take in how a job ended: what it left undone has failed, and what follows may begin."""
        cells = self.running.pop(result.job.name)
        stage = result.job.stage
        for cell, lacks in self.run.missing(cells).items():
            # What a decoding job has decoded and not measured gets a job of its own.
            undone = lacks in {stage, "train"} or result.failure is not None
            # A failure that the job itself has recorded says more.
            if undone and not self.run.failure(cell):
                logs = self.run.path / "logs"
                reason = result.failure or f"it left no result, see {logs}"
                self._fail(cell, stage, reason)

        self._update()

    def _update(self) -> None:
        """Find the jobs that can start now; cells that are finished, or have failed, leave."""
        # A selection can finish a trial, and names the folder of a decoding.
        self._select_weights()
        missing = self._drop_failed(self.run.missing(self.todo))
        self.missing, self.todo = missing, [*missing]

        # A job of which a cell has failed since is made anew, of the others.
        self.waiting = [
            job for job in self.waiting if missing.keys() >= {*self.cells[job.name]}
        ]
        busy = self._busy_cells()
        jobs = [
            *self._find_measurements(missing, busy),
            *self._find_trainings(missing, busy),
            *self._find_decodings(missing, busy),
        ]
        for stage, cells in jobs:
            job = self._make_job(stage, cells)
            self.cells[job.name] = cells
            self.waiting.append(job)

        self.waiting.sort(key=self._rank)

    def _busy_cells(self) -> set[Cell]:
        """Find the cells of the jobs that run or wait, which no other job may take."""
        waiting = [self.cells[job.name] for job in self.waiting]
        return self._find_cells_at_work().union(*waiting)

    def _find_cells_at_work(self) -> set[Cell]:
        return {*chain(*self.running.values())}

    def _select_weights(self) -> None:
        """Select the weights of every cell that no job works on, as far as they are decided."""
        at_work = self._find_cells_at_work()
        idle = [cell for cell in self.todo if cell not in at_work]
        # A tuned cell chooses among its trials, which must have selected an epoch before.
        for cell in sorted(idle, key=lambda cell: bool(cell.grid)):
            try:
                select_weights(cell, self.run.path)
            except Exception as error:  # a plugin's own: the other cells go on
                self._fail(cell, "decode", error)

    def _drop_failed(self, missing: Missing) -> Missing:
        """Keep the cells that have not failed; those that depend on a failed one fail with it."""
        failed: set[Cell] = set()
        # What fails with a cell may stop others in turn.
        while new := [c for c in missing if c not in failed and self.run.failure(c)]:
            failed.update(new)
            for cell in new:
                self._fail_following(cell, missing)
        return {cell: stage for cell, stage in missing.items() if cell not in failed}

    def _fail_following(self, failed: Cell, missing: Missing) -> None:
        """Record the failure of every cell that cannot be finished without a failed one."""
        failure = self.run.failure(failed)
        at_work = self._find_cells_at_work()
        for dependent, lacks in missing.items():
            # A training that runs beside its base may still end well, and is then decoded.
            if dependent in at_work:
                continue
            # Weights that were selected before the failure can still be tested elsewhere.
            if dependent.source == failed and self._has_weights(dependent):
                continue
            if dependent is failed or self.run.failure(dependent):
                continue
            reason = explain_failure(failed, failure, dependent, lacks)
            if reason is not None:
                error = _make_similar_error(failure, reason)
                self._fail(dependent, str(failure["stage"]), error)

    def _find_measurements(self, missing: Missing, busy: set[Cell]) -> Iterator[Work]:
        unmeasured = [
            c for c, stage in missing.items() if stage == "measure" and c not in busy
        ]
        for start in range(0, len(unmeasured), MEASURED_AT_A_TIME):
            yield "measure", unmeasured[start : start + MEASURED_AT_A_TIME]

    def _find_trainings(self, missing: Missing, busy: set[Cell]) -> Iterator[Work]:
        # A base without an answer yet holds its trainings back: its engine may not run it.
        held_back = set()
        for cell, stage in missing.items():
            if cell.is_base and stage != "measure":
                held_back.add(base_of(cell))
        held_back -= self.answering

        # A row and a trial may share a training, which is then run once.
        begun = {cell.parts.get("train") for cell in busy}
        for cell, stage in missing.items():
            may_begin = cell.is_base or base_of(cell) not in held_back
            if stage == "train" and may_begin and cell.parts["train"] not in begun:
                begun.add(cell.parts["train"])
                yield "train", [cell]

    def _find_decodings(self, missing: Missing, busy: set[Cell]) -> Iterator[Work]:
        # A training whose job still runs is to come, though its weights may be there already.
        in_training = set()
        for name, cells in self.running.items():
            if name.startswith("train-"):
                in_training.update(cells)

        waiting: defaultdict[Base, list[Cell]] = defaultdict(list)
        number_to_come: Counter[Base] = Counter()
        for cell, stage in missing.items():
            if stage == "decode" and cell not in busy:
                waiting[base_of(cell)].append(cell)
            is_to_come = stage == "train" or cell in in_training
            # The base has nothing to train, and is never waited for.
            if is_to_come and not cell.is_base:
                number_to_come[base_of(cell)] += 1

        for base in dict.fromkeys(map(base_of, missing)):
            ready = self._select_ready(waiting[base])
            decodable = DecodableBase(ready, number_to_come[base])
            for batch in decodable.split_into_jobs(self.slots):
                yield "decode", batch

    def _select_ready(self, waiting: Sequence[Cell]) -> list[Cell]:
        ready = [cell for cell in waiting if self._has_weights(cell)]
        # The job that selects a cell's epoch can test it on another task in the same go.
        following = [c for c in waiting if c not in ready and c.source in ready]
        return ready + following

    def _has_weights(self, cell: Cell) -> bool:
        """Check whether the weights that a cell validates or tests are there."""
        if cell.is_base or (cell.source is None and not cell.grid):
            return True  # it lacks decoding alone, so that its training is there
        return self.run.current(cell).checkpoint is not None

    def _fail(self, cell: Cell, stage: str, error: BaseException | str) -> None:
        record_failure(self.run.path, self.run.current(cell).key, stage, error)

    def _make_job(self, stage: str, cells: list[Cell]) -> Job:
        first = cells[0]
        place = ""
        # A job of measurements has cells of several, whose progress names none of them.
        if self.has_several_places and stage != "measure":
            place = first.card.label
            # An engine serves the cells of a model, whatever their tasks are.
            if stage != "decode":
                place += f" {first.task_label}"

        return Job(
            stage=stage,
            label=", ".join(cell.label for cell in cells),
            cells=tuple(cell.address for cell in cells),
            payload={
                "plugins": [str(file) for file in plugin_files()],
                "cells": [cell_to_json(cell) for cell in cells],
                "track": self.track,
            },
            resources=estimate_resources(stage, first),
            place=place,
        )

    def _rank(self, job: Job) -> tuple[int, int, int]:
        """Put first what is short, or frees the disk. Trainings go seed after seed, so that a run
        that is stopped has the same seeds of every loss; of those of a seed that run side by side
        the longest first, so that none is left over at the end."""
        first = self.cells[job.name][0]
        if job.stage != "train":
            return {"measure": 0, "decode": 2}[job.stage], 0, 0
        # All trainings of a model wait for its base to answer.
        if first.is_base:
            return 1, 0, 0
        if self.slots == 1:
            return 3, first.seed, 0
        examples = first.size("train") * first.recipe.epochs
        return 3, first.seed, -examples * first.card.parameter_count()


def explain_failure(
    failed: Cell, failure: Mapping[str, Any], dependent: Cell, lacks: Stage
) -> str | None:
    """Say why another cell cannot be finished once one has failed; None: it can.

    failure: what failed/KEY.json says of the failed cell. lacks: the stage that the other cell
    lacks first.
    """
    error = str(failure["error"])
    if failed.is_base:
        # Nothing is trained on a model that its engine cannot run.
        stops_training = failure["stage"] == "decode" and lacks == "train"
        if stops_training and base_of(dependent) == base_of(failed):
            return error
        return None

    if lacks != "decode":
        return None

    # A tuned cell needs all of its trials: a choice among the others would not be the same search.
    if dependent.owner.grid:
        trainings = [trial.parts["train"] for trial in dependent.owner.trials]
        if failed.parts.get("train") in trainings:
            return f"{error} (in the trial {failed.short_label})"
        return None

    # A test of transfer needs the weights of its source.
    if dependent.source == failed:
        return f"{error} (in training on {dependent.trained_on})"
    return None


def _make_similar_error(failure: Mapping[str, Any], sentence: str) -> Exception | str:
    """Make an error of the same kind as that of a failure, so that a skipped cell skips others."""
    if failure["skipped"]:
        return CellSkippedError(sentence)
    return UserError(sentence) if failure["user_error"] else sentence
