"""From experiments to a finished run: what is missing is trained, decoded, measured, compared.

Killed at any point, the same call later does only what is missing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..contracts import Executor, Job, Progress
from ..decoding.selection import settle
from ..errors import CellSkippedError, UserError
from ..experiment.cell import Cell
from ..experiment.file import ExperimentFile
from ..plugin_system.registry import load, load_plugin_file, plugin_files
from ..results.frames import read_run
from ..storage.files import read_json, write_json_if_new
from .cell_json import cell_from_json, cell_to_json
from .comparison import measure_cell, write_comparisons
from .preflight import preflight
from .run_directory import Outcome, RunDirectory, Stage, record_failure


def run_file(
    plan: ExperimentFile,
    out: Path,
    display: Callable[[], AbstractContextManager[Progress]],
    *,
    executor: str = "local",
    extend: bool = False,
    track: str | None = None,
) -> Outcome:
    """Do what is missing of a file's experiments, one after the other, in the folder `out`.

    display: opens what shows the progress of an experiment. track: see
    `smmd_bench.training.tracking`. Raises UserError for the user's mistakes, in any of the
    experiments, before anything is written; a cell that fails is in the outcome.
    """
    run, outcome = RunDirectory(out), Outcome(out)
    runner: Executor = load("executors", executor)
    with run.locked():
        run.require_own(plan.experiments, extend=extend)
        broken = _settle(run, plan.cells)
        cells = [c for c in plan.cells if c not in broken and not run.failure(c).get("skipped")]
        todo = [cell for cell in cells if "decode" in run.missing(cell)]
        with display() as progress:
            if todo:
                preflight(todo, progress)
        run.claim(plan.experiments, plan.name)
        outcome.worked = _measure(run, _earlier_cells(run, plan.cells))
        for number, experiment in enumerate(plan.experiments, start=1):
            with display() as progress:
                if len(plan.experiments) > 1:
                    progress(f"Part {number} of {len(plan.experiments)}", 0, 0)
                _Work(run, runner, progress, track).finish(experiment.cells, broken, outcome)
            outcome.worked |= write_comparisons(read_run(out))
    return outcome


@dataclass(frozen=True)
class _Work:
    """Does the missing stages of an experiment's cells."""

    run: RunDirectory
    runner: Executor
    progress: Progress
    track: str | None

    def finish(
        self, cells: Sequence[Cell], broken: Mapping[Cell, Exception], outcome: Outcome
    ) -> None:
        """Train, decode and measure what is missing, without `broken` cells; add to `outcome`."""
        run = self.run
        self._record({cell: broken[cell] for cell in cells if cell in broken})
        given_up = {c for c in cells if c in broken or run.failure(c).get("skipped")}
        stages = {cell: run.missing(cell) for cell in cells if cell not in given_up}
        todo = [cell for cell, missing in stages.items() if missing]
        for cell in todo:
            (run.cell_folder(cell) / "FAILED.json").unlink(missing_ok=True)
        untrained = [[cell] for cell in todo if "train" in stages[cell]]
        self._place(untrained, "train")
        _follow_sources(run, todo)
        self._record(_settle(run, todo))
        groups: dict[tuple[str, str, str], list[Cell]] = {}
        for cell in todo:
            if "decode" in run.missing(cell) and not run.failure(cell):
                group = (cell.model, cell.engine, cell.recipe.dtype)
                groups.setdefault(group, []).append(cell)
        self._place([*groups.values()], "decode")
        _measure(run, todo)
        outcome.worked |= bool(todo)
        outcome.notes |= {cell.label: run.notes(cell) for cell in cells}
        unfinished = given_up.union(cell for cell in todo if run.missing(cell))
        no_reason = {"stage": "run", "error": f"left no reason, see {run.path / 'logs'}"}
        for cell in (cell for cell in cells if cell in unfinished):
            failure = run.failure(cell) or no_reason
            reasons = outcome.skipped if failure.get("skipped") else outcome.failed
            reasons[cell.label] = f"{failure['stage']}: {failure['error']}"

    def _record(self, failures: Mapping[Cell, Exception]) -> None:
        for cell, error in failures.items():
            record_failure(self.run.cell_folder(cell), "decode", error)

    def _place(self, groups: Sequence[Sequence[Cell]], stage: Stage) -> None:
        """Run a job for each group; the cells that a dead job leaves unfinished have failed."""
        run = self.run
        if not groups:
            return
        jobs = [self._job(stage, group) for group in groups]
        served = {job.cells: group for job, group in zip(jobs, groups, strict=True)}
        for result in self.runner.run(jobs, run.path, self.progress):
            for cell in served[result.job.cells] if result.failure is not None else ():
                if stage in run.missing(cell) and not run.failure(cell):
                    record_failure(run.cell_folder(cell), stage, str(result.failure))

    def _job(self, stage: Stage, cells: Sequence[Cell]) -> Job:
        payload = {
            "run": str(self.run.path.resolve()),
            "plugins": [str(file) for file in plugin_files()],
            "cells": [cell_to_json(cell) for cell in cells],
            "track": self.track,
        }
        label = ", ".join(cell.label for cell in cells)
        return Job(stage, label, tuple(cell.addresses["train"] for cell in cells), payload)


def _settle(run: RunDirectory, cells: Sequence[Cell]) -> dict[Cell, Exception]:
    """Settle each cell; returns the errors of those whose epochs a task's own code cannot score."""
    failed: dict[Cell, Exception] = {}
    for cell in cells:
        try:
            settle(cell, run.path)
        except Exception as error:  # a plugin's own: the other cells go on
            failed[cell] = error
    return failed


def _follow_sources(run: RunDirectory, cells: Sequence[Cell]) -> None:
    """A test of transfer fails, or is skipped, with the training of its source."""
    for cell in cells:
        if cell.source is not None and (failure := run.failure(cell.source)):
            reason = f"{failure['error']} (in training on {cell.trained_on})"
            kind = CellSkippedError if failure["skipped"] else UserError
            error = kind(reason) if failure["skipped"] or failure["user_error"] else reason
            record_failure(run.cell_folder(cell), failure["stage"], error)


def _measure(run: RunDirectory, cells: Sequence[Cell]) -> bool:
    """Score what was decoded of these cells and not measured yet; whether there was any."""
    worked = False
    for cell in [cell for cell in cells if run.missing(cell) == ["measure"]]:
        now = run.current(cell)
        completions = pd.read_parquet(now.folder / "completions.parquet")
        worked |= measure_cell(now, cell.task_plugin, completions) is None
    return worked


def _earlier_cells(run: RunDirectory, own: Collection[Cell]) -> list[Cell]:
    """The cells of the folder's other experiments, where this version of the software measures them
    from the completions that they have; each cell.json says so then."""
    manifest = run.manifest
    for file in dict.fromkeys(f for e in manifest["experiments"] for f in e.get("plugins") or ()):
        with suppress(UserError):  # it is gone: the results of its cells stay as they are
            load_plugin_file(Path(file))
    found = []
    mine = {cell.addresses["train"] for cell in own}
    for address in manifest["cells"]:
        content = None if address in mine else read_json(run.path / "cells" / address / "cell.json")
        if content is None:
            continue
        try:
            cell = cell_from_json(content)
            known = cell.addresses["train"] == address
        except UserError:  # its model or plugin is gone, or has changed
            continue
        if known and not _settle(run, [cell]) and "decode" not in run.missing(cell):
            write_json_if_new(
                run.cell_folder(cell) / "cell.json", {**content, **cell_to_json(cell)}
            )
            found.append(cell)
    return found
