"""From experiments to a finished run: what is missing is trained, decoded, measured, compared.

Killed at any point, the same call later does only what is missing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..contracts import Executor, Progress
from ..decoding.selection import settle
from ..errors import UserError
from ..experiment.cell import Cell
from ..experiment.file import ExperimentFile
from ..plugin_system.registry import load, load_plugin_file
from ..results.frames import read_run
from ..storage.files import read_json, write_json_if_new
from .cell_json import cell_from_json, cell_to_json
from .comparison import write_comparisons
from .preflight import preflight
from .run_directory import Outcome, RunDirectory, record_failure
from .schedule import Schedule


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
        with display() as progress:
            earlier = _earlier_cells(run, plan.cells)
            outcome.worked = _Work(run, runner, progress, track).do(earlier)
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
        for cell in (cell for cell in cells if cell in broken):
            record_failure(run.cell_folder(cell), "decode", broken[cell])
        given_up = {c for c in cells if c in broken or run.failure(c).get("skipped")}
        todo = [cell for cell in cells if cell not in given_up and run.missing(cell)]
        for cell in todo:
            (run.cell_folder(cell) / "FAILED.json").unlink(missing_ok=True)
        outcome.worked |= self.do(todo) or bool(todo)
        outcome.notes |= {cell.label: run.notes(cell) for cell in cells}
        unfinished = given_up.union(cell for cell in todo if run.missing(cell))
        no_reason = {"stage": "run", "error": f"left no reason, see {run.path / 'logs'}"}
        for cell in (cell for cell in cells if cell in unfinished):
            failure = run.failure(cell) or no_reason
            reasons = outcome.skipped if failure.get("skipped") else outcome.failed
            reasons[cell.label] = f"{failure['stage']}: {failure['error']}"

    def do(self, cells: Sequence[Cell]) -> bool:
        """Do what these cells miss; whether there was anything."""
        schedule = Schedule(self.run, cells, self.runner.slots, self.track)
        worked = bool(schedule.waiting)
        for result in self.runner.run(schedule, self.run.path, self.progress) if worked else ():
            schedule.end(result)
        return worked


def _settle(run: RunDirectory, cells: Sequence[Cell]) -> dict[Cell, Exception]:
    """Settle each cell; returns the errors of those whose epochs a task's own code cannot score."""
    failed: dict[Cell, Exception] = {}
    for cell in cells:
        try:
            settle(cell, run.path)
        except Exception as error:  # a plugin's own: the other cells go on
            failed[cell] = error
    return failed


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
