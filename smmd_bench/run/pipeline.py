"""From an experiment to a finished run: what is missing is trained, decoded, measured, compared.

Killed at any point, the same call later does only what is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..contracts import Executor, Job, Progress
from ..decoding.selection import settle
from ..errors import CellSkippedError, UserError
from ..experiment.cell import Cell
from ..experiment.experiment import Experiment
from ..experiment.file import ExperimentFile
from ..plugin_system.registry import load, load_plugin_file, plugin_files
from ..results.frames import read_run
from ..scoring.measure import measure
from ..storage.files import read_json, write_json, write_json_if_new, write_parquet
from .comparison import write_comparisons
from .preflight import preflight
from .run_directory import RunDirectory, Stage, cell_from_json, cell_to_json, record_failure


@dataclass(frozen=True)
class Outcome:
    """What a call did: `worked` tells whether anything was missing; cells that failed, or were
    skipped because their loss cannot apply, with the reason; and what training noted of each."""

    path: Path
    worked: bool
    failed: dict[str, str]
    skipped: dict[str, str]
    notes: dict[str, list[str]]


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of several calls on one folder."""
    failed: dict[str, str] = {}
    skipped: dict[str, str] = {}
    notes: dict[str, list[str]] = {}
    for outcome in outcomes:
        failed |= outcome.failed
        skipped |= outcome.skipped
        notes |= outcome.notes
    worked = any(outcome.worked for outcome in outcomes)
    return Outcome(outcomes[0].path, worked, failed, skipped, notes)


def claim(
    plan: ExperimentFile, out: Path, progress: Progress, *, extend: bool = False
) -> Collection[Cell]:
    """Make `out` the folder of all of a file's experiments, before the first of them runs.

    Returns the cells that were checked for the user's mistakes. Raises UserError for the first
    mistake, or if the folder belongs to another experiment and `extend` does not add to it; the
    folder is unchanged then.
    """
    run = RunDirectory(out)
    with run.locked():
        for number, experiment in enumerate(plan.experiments):
            run.require_own(experiment, extend=extend or number > 0)
        _check(run, plan.cells, progress)
        run.claim(plan.experiments, plan.name)
    return plan.cells


def run_experiment(
    experiment: Experiment,
    out: Path,
    progress: Progress,
    *,
    executor: str = "local",
    extend: bool = False,
    track: str | None = None,
    checked: Collection[Cell] = (),
) -> Outcome:
    """Do what is missing of an experiment in the folder `out`.

    track: see `smmd_bench.training.tracking`. checked: cells that `claim` has checked. Raises
    UserError for the user's mistakes, before anything is written; a cell that fails is in the
    outcome.
    """
    run = RunDirectory(out)
    runner: Executor = load("executors", executor)
    with run.locked():
        run.require_own(experiment, extend=extend)
        broken = _check(run, experiment.cells, progress, checked)
        run.claim([experiment])
        cells = [*experiment.cells, *_earlier_cells(run, experiment)]
        state = {cell: run.missing(cell) for cell in cells}
        todo = [c for c in experiment.cells if state[c] and not _skipped(run, c) | (c in broken)]
        worked = bool(todo)
        for cell in todo:
            run.forget_failure(cell)
        for cell, error in broken.items():
            record_failure(run.cell_folder(cell), "decode", error)
        untrained = [[cell] for cell in todo if "train" in state[cell]]
        _finish(run, runner, untrained, "train", progress, {"track": track})
        _follow_sources(run, todo)
        for cell, error in _settle(run, todo).items():
            record_failure(run.cell_folder(cell), "decode", error)
        state |= {cell: run.missing(cell) for cell in todo}
        pending = [c for c in todo if "decode" in state[c] and not run.failure(c)]
        _decode(run, runner, pending, progress)
        state |= {cell: run.missing(cell) for cell in todo}
        worked |= _measure(run, state)
        worked |= write_comparisons(read_run(run.path))
        unfinished = [cell for cell in experiment.cells if state[cell]]
        notes = {cell.label: run.notes(cell) for cell in experiment.cells}
        return Outcome(out, worked, *_reasons(run, unfinished), notes)


def _check(
    run: RunDirectory, cells: Sequence[Cell], progress: Progress, checked: Collection[Cell] = ()
) -> dict[Cell, Exception]:
    """Find the user's mistakes in cells that are to be trained or decoded, but for those `checked`
    before; returns what `_settle` does."""
    broken = _settle(run, cells)
    others = [c for c in cells if c not in broken and c not in checked and not _skipped(run, c)]
    todo = [cell for cell in others if "decode" in run.missing(cell)]
    if todo:
        preflight(todo, progress)
    return broken


def _settle(run: RunDirectory, cells: Sequence[Cell]) -> dict[Cell, Exception]:
    """Settle each cell; returns the errors of those whose epochs a task's own code cannot score."""
    failed: dict[Cell, Exception] = {}
    for cell in cells:
        try:
            settle(cell, run.path)
        except Exception as error:  # a plugin's own: the other cells go on
            failed[cell] = error
    return failed


def _decode(run: RunDirectory, runner: Executor, cells: Sequence[Cell], progress: Progress) -> None:
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.model, cell.engine, cell.recipe.dtype), []).append(cell)
    _finish(run, runner, list(groups.values()), "decode", progress)


def _follow_sources(run: RunDirectory, cells: Sequence[Cell]) -> None:
    """A test of transfer fails, or is skipped, with the training of its source."""
    for cell in cells:
        failure = run.failure(cell.source) if cell.source is not None else None
        if failure is not None:
            reason = f"{failure['error']} (in training on {cell.trained_on})"
            kind = CellSkippedError if failure["skipped"] else UserError
            error = kind(reason) if failure["skipped"] or failure["user_error"] else reason
            record_failure(run.cell_folder(cell), failure["stage"], error)


def _finish(
    run: RunDirectory,
    runner: Executor,
    groups: Sequence[Sequence[Cell]],
    stage: Stage,
    progress: Progress,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Run a job for each group; a cell that a dead job left unfinished is recorded as failed.

    `more` is what its worker must know besides the cells.
    """
    if not groups:
        return
    jobs = [_job(stage, run, group, more or {}) for group in groups]
    served = {job.cells: group for job, group in zip(jobs, groups, strict=True)}
    for result in runner.run(jobs, run.path, progress):
        for cell in served[result.job.cells] if result.failure is not None else ():
            if stage in run.missing(cell) and not run.failure(cell):
                record_failure(run.cell_folder(cell), stage, str(result.failure))


def _job(stage: str, run: RunDirectory, cells: Sequence[Cell], more: Mapping[str, Any]) -> Job:
    return Job(
        stage=stage,
        label=", ".join(cell.label for cell in cells),
        cells=tuple(cell.addresses["train"] for cell in cells),
        payload={
            "run": str(run.path.resolve()),
            "plugins": [str(file) for file in plugin_files()],
            "cells": [cell_to_json(cell) for cell in cells],
            **more,
        },
    )


def _measure(run: RunDirectory, state: dict[Cell, list[Stage]]) -> bool:
    """Score what was decoded; `state` is brought up to date."""
    worked = False
    for cell in [cell for cell, stages in state.items() if stages == ["measure"]]:
        folder, stamp = run.cell_folder(cell), run.current(cell).measure_stamp
        assert stamp is not None
        completions = pd.read_parquet(folder / "completions.parquet")
        try:
            scores, metrics = measure(cell.task_plugin, completions)
        except Exception as error:  # a plugin's own: the other cells go on
            record_failure(folder, "measure", error)
            continue
        write_parquet(folder / "scores.parquet", scores, stamp)
        write_json(folder / "metrics.json", {"address": stamp, **metrics})
        state[cell] = []
        worked = True
    return worked


def _earlier_cells(run: RunDirectory, experiment: Experiment) -> list[Cell]:
    """The cells of the folder's other experiments, where this version of the software measures them
    from the completions that they have; each cell.json says so then."""
    manifest = read_json(run.path / "manifest.json") or {}
    for file in dict.fromkeys(f for e in manifest["experiments"] for f in e.get("plugins") or ()):
        with suppress(UserError):  # it is gone: the results of its cells stay as they are
            load_plugin_file(Path(file))
    found = []
    own = {cell.addresses["train"] for cell in experiment.cells}
    for address in manifest["cells"]:
        content = None if address in own else read_json(run.path / "cells" / address / "cell.json")
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


def _skipped(run: RunDirectory, cell: Cell) -> bool:
    failure = run.failure(cell)
    return failure is not None and bool(failure["skipped"])


def _reasons(run: RunDirectory, cells: Sequence[Cell]) -> tuple[dict[str, str], dict[str, str]]:
    """Why cells are unfinished: (failed, skipped), by label."""
    failed: dict[str, str] = {}
    skipped: dict[str, str] = {}
    for cell in cells:
        failure = run.failure(cell)
        if failure is None:
            failure = {
                "stage": "run",
                "skipped": False,
                "error": f"left no reason, see {run.path / 'logs'}",
            }
        reasons = skipped if failure["skipped"] else failed
        reasons[cell.label] = f"{failure['stage']}: {failure['error']}"
    return failed, skipped
