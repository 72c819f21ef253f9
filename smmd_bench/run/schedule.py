"""Which job of a run comes next: a graph without barriers.

A cell is trained; then one job validates its epochs, tests the best and measures that, with other
cells of the same base: one start of the engine serves them. Such a job starts as soon as enough
cells are trained, so that few epochs lie on the disk at a time, or when no more are to come. The
untuned base goes first, and nothing is trained on it before it is decoded: an engine that cannot
run a model says so at once.
"""

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..contracts import Job, JobQueue, JobResult, Resources
from ..decoding.selection import settle
from ..errors import CellSkippedError, UserError
from ..experiment.cell import Cell
from ..plugin_system.registry import plugin_files
from .cell_json import cell_to_json
from .lease import Leases
from .run_directory import RunDirectory, Stage, record_failure

ENOUGH = 4
"""Trained cells of a base for which an engine is started while more are to come."""
FEWEST = 2
"""Trained cells of a base that are worth an engine of their own where there is room for it."""
MEASURED_AT_A_TIME = 25
_SMALL = 50_000_000
"""Weights below which a second thread helps less than a second job: of `builtin/tiny`, two threads
train 5.6 steps a second, and two jobs of one thread 5.1 each (2 quiet cores)."""
_PROCESS_GB = 2.5
_FLOATS_A_WEIGHT = {"full": 4, "lora": 1}  # with gradient and AdamW's two moments

Base = tuple[str, str, str]


class Schedule(JobQueue):
    """The jobs of cells that miss something; `end` adds what follows from a result.

    slots: engines that can run at the same time. track: see `smmd_bench.training.tracking`. A cell
    that cannot be finished has a FAILED.json when its turn would have come. A cell that another
    process has leased is left to it, and is then in `elsewhere`.
    """

    def __init__(
        self,
        run: RunDirectory,
        cells: Sequence[Cell],
        slots: int,
        leases: Leases,
        track: str | None = None,
    ) -> None:
        super().__init__()
        self.run, self.slots, self.leases, self.track = run, slots, leases, track
        self.at_home: dict[str, list[Cell]] = defaultdict(list)
        for cell in cells:
            self.at_home[home_of(cell)].append(cell)
        self.elsewhere: list[Cell] = []
        self.several = len({(cell.model, cell.task) for cell in cells}) > 1
        self.serves: dict[str, list[Cell]] = {}
        self.untrained: Counter[Base] = Counter()
        self.untrained_bases: Counter[Base] = Counter()
        self.trained: dict[Base, list[Cell]] = defaultdict(list)
        self.tests: dict[Cell, list[Cell]] = defaultdict(list)
        missing = {cell: run.missing(cell) for cell in cells}
        self.bases: dict[Base, list[Cell]] = defaultdict(list)
        self.held: dict[Base, list[Cell]] = defaultdict(list)
        for cell in (c for c in cells if c.is_base and "decode" in missing[c]):
            self.bases[base_of(cell)].append(cell)
        for cell in (cell for cell in cells if "train" in missing[cell]):
            base = base_of(cell)
            self.untrained[base] += 1
            self.untrained_bases[base] += cell.is_base
            if cell.is_base or base not in self.bases:
                self._put("train", [cell])
            else:
                self.held[base].append(cell)
        measured = []
        for cell in (cell for cell in cells if missing[cell][:1] not in ([], ["train"])):
            if "decode" not in missing[cell]:
                measured.append(cell)
            elif cell.source is not None and "train" in missing.get(cell.source, ()):
                self.tests[cell.source].append(cell)
            else:
                self.trained[base_of(cell)].append(cell)
        for start in range(0, len(measured), MEASURED_AT_A_TIME):
            self._put("measure", measured[start : start + MEASURED_AT_A_TIME])
        for base in [*self.trained]:
            self._release(base)

    def take(self, fits: Callable[[Job], bool] | None = None) -> Job | None:
        """The first job, with those of its cells that can be leased and still need it."""
        while (job := super().take(fits)) is not None:
            cells, mine = self.serves.pop(job.name), []
            for cell in cells:
                if not self.leases.take(home_of(cell)):
                    self._leave(cell, job.stage)
                    continue
                missing = self.run.missing(cell)
                if job.stage in missing or (missing and job.stage != "train"):
                    mine.append(cell)
                elif job.stage == "train":  # another process did it since
                    self._after_training(cell)
            self._give_back(cell for cell in cells if cell not in mine)
            for cell in mine:
                (self.run.cell_folder(cell) / "FAILED.json").unlink(missing_ok=True)
            if mine:
                job = job if mine == cells else self._job(job.stage, mine)
                self.serves[job.name] = mine
                return job
            self._free(base_of(cells[0]))
        return None

    def _leave(self, cell: Cell, stage: str) -> None:
        """Leave a cell, and what follows from it, to the process that has it."""
        self.elsewhere += [cell, *self.tests.pop(cell, [])]
        if cell.is_base:
            self.bases[base_of(cell)] = []
            self._free(base_of(cell))
        if stage == "train":
            self.untrained[base_of(cell)] -= 1
            self.untrained_bases[base_of(cell)] -= cell.is_base
            self._release(base_of(cell))

    def end(self, result: JobResult) -> None:
        """Take in how a job ended: what it left undone has failed, and what follows may begin."""
        cells, stage = self.serves.pop(result.job.name), result.job.stage
        for cell in cells if result.failure is not None else ():
            if stage in self.run.missing(cell) and not self.run.failure(cell):
                record_failure(self.run.cell_folder(cell), stage, str(result.failure))
        if stage == "train":
            for cell in cells:
                self._after_training(cell)
        elif stage == "decode" and all(cell.is_base for cell in cells):
            self._after_the_base(cells)
        self._free(base_of(cells[0]))
        self._give_back(cells)

    def _give_back(self, cells: Iterable[Cell]) -> None:
        """Give back the leases under which nothing is to come any more."""
        for home in {home_of(cell) for cell in cells}:
            if not any(map(self._is_to_come, self.at_home[home])):
                self.leases.give_back(home)

    def _is_to_come(self, cell: Cell) -> bool:
        return bool(self.run.missing(cell)) and not self.run.failure(cell)

    def _after_training(self, cell: Cell) -> None:
        base, failure = base_of(cell), self.run.failure(cell)
        self.untrained[base] -= 1
        self.untrained_bases[base] -= cell.is_base
        following = self.tests.pop(cell, [])
        if failure:
            for test in following:
                where = f"in training on {test.trained_on}"
                record_following(self.run.cell_folder(test), failure, where)
        else:
            broken = settle_all(self.run, [cell, *following])
            for one in [cell, *following]:
                missing = self.run.missing(one)
                if one in broken:
                    record_failure(self.run.cell_folder(one), "decode", broken[one])
                elif "decode" in missing:
                    self.trained[base].append(one)
                elif missing:
                    self._put("measure", [one])
        self._release(base)

    def _after_the_base(self, cells: Sequence[Cell]) -> None:
        """Train no more on a base that the engine cannot run: its cells fail as the base did."""
        failures = [self.run.failure(cell) for cell in cells]
        if not all(failure and failure["stage"] == "decode" for failure in failures):
            return
        first = failures[0]
        error = UserError(first["error"]) if first["user_error"] else first["error"]
        for cell in self.held.pop(base_of(cells[0]), []):
            record_failure(self.run.cell_folder(cell), "decode", error)
            self._after_training(cell)

    def _free(self, base: Base) -> None:
        """Train on a base whose untuned cells are decoded, or are not to come any more."""
        missing = (cell for cell in self.bases[base] if "decode" in self.run.missing(cell))
        if all(map(self.run.failure, missing)):
            for cell in self.held.pop(base, []):
                self._put("train", [cell])

    def _release(self, base: Base) -> None:
        """Put what can be decoded of a base where it is worth an engine's start."""
        trained = self.trained[base]
        coming = self.untrained[base]
        first = [cell for cell in trained if cell.is_base]
        if coming and first and not self.untrained_bases[base]:
            self._put("decode", first)
            trained[:] = [cell for cell in trained if not cell.is_base]
        if not trained or (coming and len(trained) < ENOUGH):
            return
        owners = [*dict.fromkeys(cell.owner for cell in trained)]
        parts = 1 if coming else min(self.slots, -(-len(owners) // FEWEST))
        for part in range(parts):
            mine = owners[part::parts]
            self._put("decode", [cell for cell in trained if cell.owner in mine])
        trained.clear()

    def _put(self, stage: Stage, cells: list[Cell]) -> None:
        job = self._job(stage, cells)
        self.serves[job.name] = cells
        insort(self.waiting, job, key=self._rank)

    def _job(self, stage: str, cells: list[Cell]) -> Job:
        first = cells[0]
        place = first.card.label if stage == "decode" else f"{first.card.label} {first.task}"
        return Job(
            stage=stage,
            label=", ".join(cell.label for cell in cells),
            cells=tuple(cell.addresses["train"] for cell in cells),
            payload={
                "plugins": [str(file) for file in plugin_files()],
                "cells": [cell_to_json(cell) for cell in cells],
                "track": self.track,
            },
            resources=resources_of(stage, first),
            place=place if self.several and stage != "measure" else "",
            folders=tuple(dict.fromkeys(f for cell in cells for f in self._folders(cell))),
        )

    def _folders(self, cell: Cell) -> Iterator[str]:
        """What a job of a cell reads and writes: the folders of its weights, and its own."""
        owner = cell.owner
        for one in (*owner.trials, owner, cell):
            yield f"cells/{one.addresses['train']}"

    def _rank(self, job: Job) -> tuple[int, int, int]:
        """What is short, or frees the disk, goes first. Trainings go seed after seed, so that a run
        that is stopped has the same seeds of every loss; of those of a seed that run side by side
        the longest first, so that none is left over at the end."""
        first = self.serves[job.name][0]
        if job.stage != "train":
            return {"measure": 0, "decode": 2}[job.stage], 0, 0
        if first.is_base:
            return 1, 0, 0
        length = first.card.parameter_count() * first.size("train") * first.recipe.epochs
        return 3, first.seed, -length if self.slots > 1 else 0


def record_following(folder: Path, failure: Mapping[str, Any], where: str) -> None:
    """A cell fails, or is skipped, with the one whose weights it was to test."""
    reason = f"{failure['error']} ({where})"
    kind = CellSkippedError if failure["skipped"] else UserError
    error = kind(reason) if failure["skipped"] or failure["user_error"] else reason
    record_failure(folder, str(failure["stage"]), error)


def settle_all(run: RunDirectory, cells: Iterable[Cell]) -> dict[Cell, Exception]:
    """Settle each cell, the tuned ones after their trials; returns the errors of those whose epochs
    a task's own code cannot score."""
    failed: dict[Cell, Exception] = {}
    for cell in sorted(cells, key=lambda cell: bool(cell.grid)):
        try:
            settle(cell, run.path)
        except Exception as error:  # a plugin's own: the other cells go on
            failed[cell] = error
    return failed


def home_of(cell: Cell) -> str:
    """What a lease is of: the address of the cell whose weights this one tests."""
    return cell.owner.addresses["train"]


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
    return Resources(1, 1 if weights < _SMALL else None, memory)
