"""Which job of a run comes next: what is missing, and has what it is made from.

A cell is trained; then one job validates its epochs, tests the best and measures that, with other
cells of the same base: one start of the engine serves them. Such a job starts as soon as enough
cells are trained, so that few epochs lie on the disk at a time, or when no more are to come. The
untuned base goes first, and nothing is trained on it before it is decoded: an engine that cannot
run a model says so at once. A tuned cell waits for its trials.
"""

from collections.abc import Callable, Iterator, Sequence

from ..contracts import Job, JobQueue, JobResult, Resources
from ..decoding.selection import settle
from ..errors import CellSkippedError, UserError
from ..experiment.cell import Cell
from ..plugin_system.registry import plugin_files
from ..storage.cell import failure_file
from .cell_json import cell_to_json
from .run_directory import RunDirectory, Stage, record_failure

ENOUGH = 4
"""Trained cells of a base for which an engine is started while more are to come."""
FEWEST = 2
"""Trained cells of a base that are worth an engine of their own where there is room for it."""
MEASURED_AT_A_TIME = 25
_SMALL = {"train": 200_000_000, "decode": 50_000_000}
"""Weights below which a second thread helps less than a second job. On two cores two threads train
`builtin/tiny` at 5.6 steps a second, two jobs 5.1 each; SmolLM2-135M by LoRA 1.0, two 1.0 each."""
_PROCESS_GB = 2.5
_FLOATS_A_WEIGHT = {"full": 4, "lora": 1}  # with gradient and AdamW's two moments

Base = tuple[str, str, str]
Left = dict[Cell, Stage]
Work = tuple[Stage, list[Cell]]


class Schedule(JobQueue):
    """The jobs of what cells miss; `end` takes in a result and finds what can begin then.

    slots: jobs that can run at the same time. track: see `smmd_bench.training.tracking`.
    """

    def __init__(
        self, run: RunDirectory, cells: Sequence[Cell], slots: int, track: str | None = None
    ) -> None:
        super().__init__()
        self.run, self.slots, self.track = run, slots, track
        self.several = len({(cell.model, cell.task) for cell in cells}) > 1
        self.cells: dict[str, list[Cell]] = {}
        self.running: dict[str, list[Cell]] = {}
        self.todo = [*cells]
        for cell in cells:
            if not run.failure(cell).get("skipped"):
                failure_file(run.path, run.current(cell).key).unlink(missing_ok=True)
        self._update()

    def take(self, fits: Callable[[Job], bool] | None = None) -> Job | None:
        """The first job (that fits)."""
        if (job := super().take(fits)) is not None:
            self.running[job.name] = self.cells[job.name]
        return job

    def end(self, result: JobResult) -> None:
        """Take in how a job ended: what it left undone has failed, and what follows may begin."""
        cells, stage = self.running.pop(result.job.name), result.job.stage
        for cell, lacks in self.run.missing(cells).items():
            undone = lacks in {stage, "train"} or result.failure is not None
            if undone and not self.run.failure(cell):
                reason = result.failure or f"it left no result, see {self.run.path / 'logs'}"
                self._fail(cell, stage, reason)
        self._update()

    def _update(self) -> None:
        """Find the jobs that can start now; cells that are finished, or have failed, leave."""
        at_work = {cell for cells in self.running.values() for cell in cells}
        settled = (cell for cell in self.todo if cell not in at_work)
        for cell in sorted(settled, key=lambda cell: bool(cell.grid)):
            try:
                settle(cell, self.run.path)
            except Exception as error:  # a plugin's own: the other cells go on
                self._fail(cell, "decode", error)
        missing, failed = self.run.missing(self.todo), set()
        while new := {c for c in missing if c not in failed and self.run.failure(c)}:
            failed |= new
            for cell in new:
                self._fail_following(cell, missing)
        self.todo = [cell for cell in missing if cell not in failed]
        left = {cell: missing[cell] for cell in self.todo}
        self.waiting = [job for job in self.waiting if left.keys() >= {*self.cells[job.name]}]
        given = [*self.running.values(), *(self.cells[job.name] for job in self.waiting)]
        busy = {cell for cells in given for cell in cells}
        unmeasured = [c for c, stage in left.items() if stage == "measure" and c not in busy]
        starts = range(0, len(unmeasured), MEASURED_AT_A_TIME)
        jobs = [("measure", unmeasured[at : at + MEASURED_AT_A_TIME]) for at in starts]
        jobs += [*self._trainings(left, busy), *self._decodings(left, busy)]
        for stage, cells in jobs:
            self.waiting.append(job := self._job(stage, cells))
            self.cells[job.name] = cells
        self.waiting.sort(key=self._rank)

    def _trainings(self, left: Left, busy: set[Cell]) -> Iterator[Work]:
        held = {base_of(c) for c, stage in left.items() if c.is_base and stage != "measure"}
        taken = {cell.parts.get("train") for cell in busy}
        for cell, stage in left.items():
            free = cell.is_base or base_of(cell) not in held
            if stage == "train" and free and cell.parts["train"] not in taken:
                taken.add(cell.parts["train"])  # a row and a trial may share a training
                yield "train", [cell]

    def _decodings(self, left: Left, busy: set[Cell]) -> Iterator[Work]:
        """What can be decoded of a base, where it is worth an engine's start."""
        running = (cells for name, cells in self.running.items() if name.startswith("train-"))
        training = {cell for cells in running for cell in cells}  # also what is about to end
        for base in dict.fromkeys(map(base_of, left)):
            mine = {cell: stage for cell, stage in left.items() if base_of(cell) == base}
            later = {c for c, stage in mine.items() if stage == "train" or c in training}
            coming = sum(not cell.is_base for cell in later)
            waiting = [c for c, stage in mine.items() if stage == "decode" and c not in busy]
            ready = [cell for cell in waiting if self._has_weights(cell)]
            ready += [c for c in waiting if c not in ready and c.source in ready]
            if coming and any(cell.is_base for cell in ready):
                yield "decode", [cell for cell in ready if cell.is_base]
                ready = [cell for cell in ready if not cell.is_base]
            if not ready or (coming and len(ready) < ENOUGH):
                continue
            owners = [*dict.fromkeys(cell.owner for cell in ready)]
            parts = 1 if coming else min(self.slots, -(-len(owners) // FEWEST))
            for part in range(parts):
                yield "decode", [cell for cell in ready if cell.owner in owners[part::parts]]

    def _has_weights(self, cell: Cell) -> bool:
        """Whether the weights that a cell validates or tests are there."""
        if cell.is_base or (cell.source is None and not cell.grid):
            return True
        return self.run.current(cell).checkpoint is not None

    def _fail_following(self, cell: Cell, missing: dict[Cell, Stage]) -> None:
        """What was to test the weights of a failed cell, or waits for a failed base, fails, too."""
        failure, weights = self.run.failure(cell), cell.parts.get("train")
        for other, stage in missing.items():
            where = None
            if cell.is_base:
                on_it = base_of(other) == base_of(cell) and stage == "train"
                where = "" if on_it and failure["stage"] == "decode" else None
            elif stage == "decode" and other.owner.grid:
                tried = [trial.parts["train"] for trial in other.owner.trials]
                where = f" (in the trial {cell.short_label})" if weights in tried else None
            elif stage == "decode" and other.source == cell and not self._has_weights(other):
                where = f" (in training on {other.trained_on})"
            if where is not None and other is not cell and not self.run.failure(other):
                error: Exception | str = f"{failure['error']}{where}"
                if failure["skipped"] or failure["user_error"]:
                    error = (CellSkippedError if failure["skipped"] else UserError)(error)
                self._fail(other, str(failure["stage"]), error)

    def _fail(self, cell: Cell, stage: str, error: BaseException | str) -> None:
        record_failure(self.run.path, self.run.current(cell).key, stage, error)

    def _job(self, stage: str, cells: list[Cell]) -> Job:
        first = cells[0]
        place = first.card.label if stage == "decode" else f"{first.card.label} {first.task_label}"
        return Job(
            stage=stage,
            label=", ".join(cell.label for cell in cells),
            cells=tuple(cell.address for cell in cells),
            payload={
                "plugins": [str(file) for file in plugin_files()],
                "cells": [cell_to_json(cell) for cell in cells],
                "track": self.track,
            },
            resources=resources_of(stage, first),
            place=place if self.several and stage != "measure" else "",
        )

    def _rank(self, job: Job) -> tuple[int, int, int]:
        """What is short, or frees the disk, goes first. Trainings go seed after seed, so that a run
        that is stopped has the same seeds of every loss; of those of a seed that run side by side
        the longest first, so that none is left over at the end."""
        first = self.cells[job.name][0]
        if job.stage != "train":
            return {"measure": 0, "decode": 2}[job.stage], 0, 0
        if first.is_base:
            return 1, 0, 0
        length = first.card.parameter_count() * first.size("train") * first.recipe.epochs
        return 3, first.seed, -length if self.slots > 1 else 0


def base_of(cell: Cell) -> Base:
    """What one start of an engine serves: model, engine, dtype."""
    return cell.model, cell.engine, cell.recipe.dtype


def resources_of(stage: str, cell: Cell) -> Resources:
    """What a job of that stage needs for the model of a cell."""
    if stage == "measure":
        return Resources(memory_gb=_PROCESS_GB)
    weights = cell.card.parameter_count()
    floats = _FLOATS_A_WEIGHT[cell.recipe.method] if stage == "train" else 1
    memory = _PROCESS_GB + 4 * floats * weights / 2**30
    if stage != "train":
        memory += cell.engine_settings.memory_gb
    return Resources(1, 1 if weights < _SMALL[stage] else None, memory)


def disk_bytes(cells: Sequence[Cell], slots: int) -> tuple[int, int]:
    """Bytes of weights that lie on the disk when these cells are finished, and at most before that:
    a cell in training has the Trainer's last two states, and one that waits for its decoding every
    epoch."""
    trained = [cell for cell in cells if not (cell.is_base or cell.source or cell.grid)]
    saved = {cell: 4 * _saved_weights(cell) for cell in trained}  # float32
    end = sum(b * (1 + c.recipe.epochs * c.recipe.keep_epochs) for c, b in saved.items())
    epochs = sorted((b * cell.recipe.epochs for cell, b in saved.items()), reverse=True)
    waiting = sum(epochs[: slots + 2 * ENOUGH * len({*map(base_of, trained)})])
    states = 2 * 3 * sum(sorted(saved.values(), reverse=True)[:slots])  # with AdamW's moments
    return end, end + waiting + states


def _saved_weights(cell: Cell) -> int:
    from ..models.loading import adapter_weights

    if cell.recipe.method == "full":
        return cell.card.parameter_count()
    return adapter_weights(cell.card, cell.recipe.lora_targets, cell.recipe.lora_rank)
