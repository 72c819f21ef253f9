"""From an experiment to a finished run: what is missing is trained, decoded, measured, compared.

Killed at any point, the same call later does only what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from .contracts import Executor, Job, Progress
from .errors import CellSkippedError, UserError
from .experiment import Cell, Experiment
from .experiment_file import ExperimentFile, experiment_from_yaml
from .preflight import preflight
from .registry import load, load_plugin_file, plugin_files
from .results.files import read_json, write_json, write_parquet
from .run_directory import RunDirectory, Stage, cell_to_json, record_failure
from .scoring.comparison import CellKey, Measured, opponents, write_comparison
from .scoring.measure import measure


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


def claim(plan: ExperimentFile, out: Path, extend: bool) -> None:
    """Make `out` the folder of all of a file's experiments, before the first of them runs.

    Raises UserError if it belongs to another one and `extend` does not add to it.
    """
    run = RunDirectory(out)
    with run.locked():
        for number, experiment in enumerate(plan.experiments):
            run.claim(experiment, extend or number > 0, plan.name)


def run_experiment(
    experiment: Experiment,
    out: Path,
    progress: Progress,
    *,
    executor: str = "local",
    extend: bool = False,
    track: str | None = None,
) -> Outcome:
    """Do what is missing of an experiment in the folder `out`; `track`: see `smmd_bench.tracking`.

    Raises UserError for what the user must mend first; a cell that fails is in the outcome.
    """
    run = RunDirectory(out)
    runner: Executor = load("executors", executor)
    with run.locked():
        run.claim(experiment, extend)
        cells = [*experiment.cells, *_earlier_cells(run, experiment)]
        for cell in cells:
            run.select_again(cell)
        state = {cell: run.missing(cell) for cell in cells}
        todo = [c for c in experiment.cells if state[c] and not _skipped(run, c)]
        worked = bool(todo)
        if any("decode" in state[cell] for cell in todo):
            preflight(todo, progress)
        for cell in todo:
            run.forget_failure(cell)
        untrained = [[cell] for cell in todo if "train" in state[cell]]
        _finish(run, runner, untrained, "train", progress, {"track": track})
        _follow_sources(run, todo)
        state |= {cell: run.missing(cell) for cell in todo}
        pending = [c for c in todo if "decode" in state[c] and not run.failure(c)]
        _decode(run, runner, pending, progress)
        state |= {cell: run.missing(cell) for cell in todo}
        worked |= _measure(run, state)
        worked |= _compare(run, [cell for cell, stages in state.items() if not stages])
        unfinished = [cell for cell in experiment.cells if state[cell]]
        notes = {cell.label: run.notes(cell) for cell in experiment.cells}
        return Outcome(out, worked, *_reasons(run, unfinished), notes)


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
            error = CellSkippedError(reason) if failure["skipped"] else reason
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
        folder, wanted = run.cell_folder(cell), cell.addresses["measure"]
        completions = pd.read_parquet(folder / "completions.parquet")
        try:
            scores, metrics = measure(cell.task_plugin, completions)
        except Exception as error:  # a plugin's own: the other cells go on
            record_failure(folder, "measure", error)
            continue
        write_parquet(folder / "scores.parquet", scores, wanted)
        write_json(folder / "metrics.json", {"address": wanted, **metrics})
        state[cell] = []
        worked = True
    return worked


def _compare(run: RunDirectory, cells: Sequence[Cell]) -> bool:
    """Compare each loss with CE of the same recipe and seed; CE, or without CE, with the base."""
    known = {CellKey(c.model, c.task, c.trained_on, c.recipe, c.loss, c.seed): c for c in cells}
    worked = False
    for key, other in opponents(known.keys()).items():
        pair = (
            Measured(run.cell_folder(c), c.addresses["train"], c.loss, c.addresses["measure"])
            for c in (known[key], known[other])
        )
        worked |= write_comparison(known[key].task_plugin, *pair)
    return worked


def _earlier_cells(run: RunDirectory, experiment: Experiment) -> list[Cell]:
    """The cells of the folder's other experiments that still count: opponents for the new ones."""
    manifest = read_json(run.path / "manifest.json") or {}
    own = {cell.addresses["train"] for cell in experiment.cells}
    found: dict[str, Cell] = {}
    for content in manifest["experiments"]:
        if content == experiment.to_dict():
            continue
        try:
            earlier = experiment_from_yaml(yaml.safe_dump(content), "manifest.json")
            for file in earlier.plugins:
                load_plugin_file(Path(file))
            found |= {cell.addresses["train"]: cell for cell in earlier.cells}
        except UserError:  # its model or plugin is gone: its results stay as they are
            continue
    return [c for a, c in found.items() if a in manifest["cells"] and a not in own]


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
