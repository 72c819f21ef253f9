"""From experiments to a finished run: what is missing is trained, decoded, measured, compared.

Killed at any point, the same call later does only what is missing.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..contracts import Executor, Progress
from ..errors import UserError, did_you_mean
from ..experiment.cell import Cell
from ..experiment.file import ExperimentFile
from ..plugin_system.consent import load_named, load_of_run
from ..plugin_system.registry import load
from ..results.frames import read_run
from ..storage.files import read_own_json, write_json_if_new
from ..storage.run_storage import RunStorage
from .cell_json import cell_from_json, cell_to_json
from .comparison import write_comparisons
from .lease import Leases
from .preflight import preflight
from .run_directory import Outcome, RunDirectory, record_failure
from .schedule import Schedule, home_of, settle_all
from .staging import StagedLeases, fetch_run, put_run, require_idle
from .trials import try_engines

_SECONDS = 2.0


def run_file(
    plan: ExperimentFile,
    out: Path,
    display: Callable[[], AbstractContextManager[Progress]],
    *,
    executor: str = "local",
    extend: bool = False,
    track: str | None = None,
    storage: str | None = None,
) -> Outcome:
    """Do what is missing of a file's experiments in the folder `out`.

    display: opens what shows the progress. track: see `smmd_bench.training.tracking`. storage: URL
    from which the folder is fetched first. Raises UserError for the user's mistakes, in any of the
    experiments, before anything is written; a cell that fails is in the outcome.
    """
    run, outcome = RunDirectory(out), Outcome(out)
    runner: Executor = load("executors", executor)
    with run.locked():
        if storage is not None:
            stored = RunStorage(storage)
            require_idle(stored, plan.cells)
            fetch_run(stored, out, weights=True)
        run.require_own(plan.experiments, extend=extend)
        with display() as progress:
            broken = _check(run, plan.cells, progress)
        run.claim(plan.experiments, plan.name)
        run.keep_plugins()
        with display() as progress, Leases(out) as leases:
            work = _Work(run, runner, progress, leases, track)
            earlier = _earlier_cells(run, plan.cells)
            outcome.worked = any(run.missing(cell) for cell in earlier)
            work.do(earlier)
            work.finish(plan.cells, broken, outcome)
        outcome.worked |= write_comparisons(read_run(out))
    return outcome


def plan_file(
    plan: ExperimentFile, out: Path, *, extend: bool = False, storage: str | None = None
) -> None:
    """Make the folder of a file's experiments, for `work_on`; in a storage, too, where one is
    given. Raises UserError for the user's mistakes."""
    run, stored = RunDirectory(out), None if storage is None else RunStorage(storage)
    with run.locked():
        if stored is not None:
            require_idle(stored, plan.cells)
            fetch_run(stored, out, weights=False)
        run.require_own(plan.experiments, extend=extend)
        run.claim(plan.experiments, plan.name)
        run.keep_plugins()
        if stored is not None:
            put_run(stored, out)


def work_on(
    path: Path,
    addresses: Sequence[str],
    display: Callable[[], AbstractContextManager[Progress]],
    *,
    executor: str = "local",
    storage: str | None = None,
) -> Outcome:
    """Do what cells of a planned run miss; those that other processes work on are left to them.

    addresses: of the cells, each with its tests of transfer; none: all of the run's. storage: URL
    of the run, of which `path` then has what is worked on. Raises UserError if the folder is no run
    or has no such cell, or if a plugin or data have changed.
    """
    run, outcome = RunDirectory(path), Outcome(path)
    runner: Executor = load("executors", executor)
    stored = None if storage is None else RunStorage(storage)
    if stored is not None:
        fetch_run(stored, path, weights=False)
    cells = _planned_cells(run, addresses)
    leasing = Leases(path) if stored is None else StagedLeases(stored, path, cells)
    with display() as progress, leasing as leases:
        broken = _check(run, cells, progress)
        _Work(run, runner, progress, leases, None).finish(cells, broken, outcome, waits=False)
    return outcome


def _check(run: RunDirectory, cells: Sequence[Cell], progress: Progress) -> dict[Cell, Exception]:
    """Settle the cells, and find the user's mistakes in those that are not decoded yet.

    Returns the errors of cells whose epochs a task's own code cannot score.
    """
    broken = settle_all(run, cells)
    sound = [c for c in cells if c not in broken and not run.failure(c).get("skipped")]
    if todo := [cell for cell in sound if "decode" in run.missing(cell)]:
        preflight(todo, progress)
    return broken


def _planned_cells(run: RunDirectory, addresses: Sequence[str]) -> list[Cell]:
    """The cells of a run with these addresses, or that test the weights of one of these."""
    manifest = run.manifest
    if not manifest:
        raise UserError(f"{run.path} holds no plan: make one with `smmd-bench plan --out`.")
    for file in run.plugin_files:  # a plan is run as an experiment file is
        load_named(file)
    there = {a: read_own_json(run.path / "cells" / a / "cell.json") for a in manifest["cells"]}
    for address in addresses:
        if address not in there:
            raise UserError(f"{run.path} has no cell {address}: {did_you_mean(address, there)}")
    wanted = {*(addresses or there)}
    found = []
    for address, content in there.items():
        if content is None:
            raise UserError(f"{run.path} lacks the cell.json of {address}: plan it again.")
        if address in wanted or content.get("source") in wanted:
            cell = cell_from_json(content)
            if cell.addresses != content["addresses"]:
                raise UserError(
                    f"A plugin, data or a library of {cell.label} is another one than when "
                    f"{run.path} was planned: plan it again."
                )
            found.append(cell)
    return found


@dataclass(frozen=True)
class _Work:
    """Does the missing stages of an experiment's cells."""

    run: RunDirectory
    runner: Executor
    progress: Progress
    leases: Leases
    track: str | None

    def finish(
        self,
        cells: Sequence[Cell],
        broken: Mapping[Cell, Exception],
        outcome: Outcome,
        *,
        waits: bool = True,
    ) -> None:
        """Train, decode and measure what is missing, without `broken` cells; add to `outcome`.

        waits: until other processes have done, or left, what they work on.
        """
        run = self.run
        for cell in (cell for cell in cells if cell in broken):
            record_failure(run.cell_folder(cell), "decode", broken[cell])
        given_up = {c for c in cells if c in broken or run.failure(c).get("skipped")}
        todo = [cell for cell in cells if cell not in given_up and run.missing(cell)]
        outcome.worked |= bool(todo)
        refused = set()
        if waits:  # other processes of `work` would each try the same
            refused = try_engines(run, todo, self.runner, self.progress, self.leases)
        left = self.do([cell for cell in todo if cell not in refused])
        while left and waits:
            if (holder := self.leases.holder(home_of(left[0]))) is not None:
                self.progress(f"{len(left)} cells are left to other processes, as {holder}", 0, 0)
            while self.leases.holder(home_of(left[0])) is not None:
                time.sleep(_SECONDS)
            left = self.do(left)
        ended = "a process that has ended since"
        outcome.elsewhere |= {c.label: self.leases.holder(home_of(c)) or ended for c in left}
        outcome.notes |= {cell.label: run.notes(cell) for cell in cells}
        unfinished = given_up.union(cell for cell in todo if run.missing(cell))
        no_reason = {"stage": "run", "error": f"left no reason, see {run.path / 'logs'}"}
        for cell in (cell for cell in cells if cell in unfinished and cell not in left):
            failure = run.failure(cell) or no_reason
            reasons = outcome.skipped if failure.get("skipped") else outcome.failed
            reasons[cell.label] = f"{failure['stage']}: {failure['error']}"

    def do(self, cells: Sequence[Cell]) -> list[Cell]:
        """Do what these cells miss; returns those that are left to other processes."""
        if not cells:
            return []
        schedule = Schedule(self.run, cells, self.runner.slots, self.leases, self.track)
        for result in self.runner.run(schedule, self.run.path, self.progress):
            schedule.end(result)
        return schedule.elsewhere


def _earlier_cells(run: RunDirectory, own: Collection[Cell]) -> list[Cell]:
    """The cells of the folder's other experiments, where this version of the software measures them
    from the completions that they have; each cell.json says so then."""
    for file in run.plugin_files:
        with suppress(UserError):  # it is gone: the results of its cells stay as they are
            load_of_run(file)
    found = []
    mine = {cell.addresses["train"] for cell in own}
    for address in run.manifest["cells"]:
        content = (
            None if address in mine else read_own_json(run.path / "cells" / address / "cell.json")
        )
        if content is None:
            continue
        try:
            cell = cell_from_json(content)
            known = cell.addresses["train"] == address
        except UserError:  # its model or plugin is gone, or has changed
            continue
        if known and not settle_all(run, [cell]) and "decode" not in run.missing(cell):
            write_json_if_new(
                run.cell_folder(cell) / "cell.json", {**content, **cell_to_json(cell)}
            )
            found.append(cell)
    return found
