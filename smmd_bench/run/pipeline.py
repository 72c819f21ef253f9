"""From experiments to a finished run: what is missing is trained, decoded, measured, compared.

Killed at any point, the same call later does only what is missing.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..contracts import Executor, Progress
from ..errors import UserError, did_you_mean
from ..experiment.cell import Cell
from ..experiment.file import ExperimentFile
from ..plugin_system.registry import load, load_plugin_file
from ..results.frames import read_run
from ..storage.data_files import require_folder_read
from ..storage.files import read_own_json, write_json_if_new
from ..storage.manifest import cells_and_trials
from ..storage.run_storage import RunStorage
from .cell_json import cell_from_json, cell_to_json, grid_from_json
from .comparison import write_comparisons
from .lease import Leases
from .preflight import preflight
from .run_directory import Outcome, RunDirectory
from .schedule import settle_all
from .staging import StagedLeases, fetch_run, put_run, require_idle
from .work import Work

_LOOKED_AT = 1000


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
        broken = settle_all(run, plan.cells)
        run = run.wanting(plan.cells)
        with display() as progress:
            _check(run, plan.cells, broken, progress)
        run.claim(plan.experiments, plan.name)
        run.keep_plugins()
        with display() as progress, Leases(out) as leases:
            work = Work(run, runner, progress, leases, track)
            earlier = _earlier_cells(run, plan.cells)
            outcome.worked = any(run.missing(cell) for cell in earlier)
            work.do(earlier)
            work.finish(plan.cells, broken, outcome)
        outcome.worked |= write_comparisons(read_run(out))
    return outcome


def check_file(
    run: RunDirectory, plan: ExperimentFile, progress: Progress, *, extend: bool = False
) -> None:
    """Raise UserError for what `run_file` would refuse in this folder; nothing is written there.

    Of examples that are generated, the first `_LOOKED_AT` of a split stand for all.
    """
    run.require_place()
    run.require_own(plan.experiments, extend=extend)
    _check(run, plan.cells, (), progress, most=_LOOKED_AT)


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
    require_folder_read()
    leasing = Leases(path) if stored is None else StagedLeases(stored, path, cells)
    broken = settle_all(run, cells)
    run = run.wanting(cells, addresses)
    with display() as progress, leasing as leases:
        _check(run, cells, broken, progress)
        Work(run, runner, progress, leases, None).finish(cells, broken, outcome, waits=False)
    return outcome


def _check(
    run: RunDirectory,
    cells: Sequence[Cell],
    broken: Collection[Cell],
    progress: Progress,
    *,
    most: int | None = None,
) -> None:
    """Find the user's mistakes in the cells that are not decoded yet, without the `broken` ones.

    most: of generated examples so many a split are looked at (None: all).
    """
    sound = [c for c in cells if c not in broken and not run.failure(c).get("skipped")]
    if todo := [cell for cell in sound if "decode" in run.missing(cell)]:
        preflight(todo if most is None else [_with_fewer(cell, most) for cell in todo], progress)


def _with_fewer(cell: Cell, most: int) -> Cell:
    """The cell with at most so many examples of each split whose examples are generated."""
    made = [split for split in cell.splits if cell.rows_there(split, 1) is None]
    sizes = {f"{split}_examples": min(most, cell.size(split)) for split in made}
    return replace(cell, recipe=cell.recipe.changed(sizes))


def _planned_cells(run: RunDirectory, addresses: Sequence[str]) -> list[Cell]:
    """The cells and trials of a run with these addresses, or that test the weights of one."""
    manifest = run.manifest
    if not manifest:
        raise UserError(f"{run.path} holds no plan: make one with `smmd-bench plan --out`.")
    for file in run.plugin_files:  # a plan is run as an experiment file is
        load_plugin_file(file)
    files = {a: run.path / "cells" / a / "cell.json" for a in cells_and_trials(manifest)}
    there = {address: read_own_json(file) for address, file in files.items()}
    tried = _tried(filter(None, there.values()))
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
            is_trial = address in manifest.get("trials", ())
            found.append(replace(cell, trial=tried.get(address)) if is_trial else cell)
    return found


def _tried(described: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What each trial of the tuned cells among these changes of the recipe, by address."""
    return {
        address: point.spelled_settings
        for content in described
        for address, point in zip(content.get("trials", ()), grid_from_json(content), strict=False)
    }


def _earlier_cells(run: RunDirectory, own: Collection[Cell]) -> list[Cell]:
    """The cells of the folder's other experiments, where this version of the software measures them
    from the completions that they have; each cell.json says so then."""
    found = []
    mine = {cell.addresses["train"] for cell in own}
    for address in cells_and_trials(run.manifest):
        content = (
            None if address in mine else read_own_json(run.path / "cells" / address / "cell.json")
        )
        if content is None:
            continue
        try:
            cell = cell_from_json(content)
            known = cell.addresses["train"] == address
        except UserError:  # its model is gone, or its plugin is not loaded, or has changed
            continue
        if address in run.manifest.get("trials", ()):
            cell = replace(cell, trial="")
        if known and not settle_all(run, [cell]) and "decode" not in run.missing(cell):
            write_json_if_new(
                run.cell_folder(cell) / "cell.json",
                {**content, **cell_to_json(replace(cell, trial=None))},
            )
            found.append(cell)
    return found
