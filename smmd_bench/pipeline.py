"""From an experiment to a finished run: what is missing is trained, decoded, measured, compared.

Killed at any point, the same call later does only what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from .contracts import Executor, Job, Progress
from .errors import UserError
from .experiment import BASE, Cell, Experiment
from .registry import load, plugin_files
from .results.files import read_json, write_json, write_parquet
from .run_directory import RunDirectory, cell_to_json, record_failure
from .scoring.measure import compare, measure


@dataclass(frozen=True)
class Outcome:
    """What a call did: `worked` tells whether anything was missing; cells that failed, or were
    skipped because their loss cannot apply, with the reason."""

    path: Path
    worked: bool
    failed: dict[str, str]
    skipped: dict[str, str]


def run_experiment(
    experiment: Experiment,
    out: Path,
    progress: Progress,
    *,
    executor: str = "local",
    extend: bool = False,
) -> Outcome:
    """Do what is missing of an experiment in the folder `out`.

    Raises UserError for what the user must mend first; a cell that fails is in the outcome.
    """
    cells = experiment.cells
    run = RunDirectory(out)
    runner: Executor = load("executors", executor)
    with run.locked():
        run.claim(experiment, extend)
        missing = {cell: run.missing(cell) for cell in cells}
        if any("train" in stages or "decode" in stages for stages in missing.values()):
            preflight([cell for cell, stages in missing.items() if stages])
        for cell, stages in missing.items():
            if stages:
                run.forget_failure(cell)
        _train(run, runner, [c for c, stages in missing.items() if "train" in stages], progress)
        pending = [c for c in cells if "decode" in run.missing(c) and not run.failure(c)]
        _decode(run, runner, pending, progress)
        measured = _measure(run, cells)
        worked = any(missing.values()) or measured
        return Outcome(out, worked, *_unfinished(run, cells))


def preflight(cells: Sequence[Cell]) -> None:
    """Find the user's mistakes before anything starts: tokenizers without numbers, missing data."""
    from .numbers import numeric_vocabulary
    from .training.models import load_tokenizer

    for folder, rule in {(c.card.folder, c.recipe.numeric_rule) for c in cells}:
        numeric_vocabulary(load_tokenizer(folder), rule)
    for cell in cells:
        for split in ("validation", "test"):
            cell.task_plugin.examples(split, cell.data_seed, cell.size(split))


def _train(run: RunDirectory, runner: Executor, cells: Sequence[Cell], progress: Progress) -> None:
    for cell in cells:
        if not cell.is_base:  # made once here, not in every worker
            cell.task_plugin.examples("train", cell.data_seed, cell.size("train"))
    jobs = [_job("train", run, [cell]) for cell in cells]
    _finish(run, runner, jobs, progress)


def _decode(run: RunDirectory, runner: Executor, cells: Sequence[Cell], progress: Progress) -> None:
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.model, cell.engine, cell.recipe.dtype), []).append(cell)
    _finish(run, runner, [_job("decode", run, group) for group in groups.values()], progress)


def _finish(run: RunDirectory, runner: Executor, jobs: Sequence[Job], progress: Progress) -> None:
    if not jobs:
        return
    for result in runner.run(jobs, run.path, progress):
        if result.failure is None:
            continue
        for address in result.job.cells:
            folder = run.path / "cells" / address
            done = folder / ("train.json" if result.job.stage == "train" else "probes.parquet")
            if not (folder / "FAILED.json").exists() and not done.exists():
                record_failure(folder, result.job.stage, result.failure)


def _job(stage: str, run: RunDirectory, cells: Sequence[Cell]) -> Job:
    return Job(
        stage=stage,
        label=", ".join(cell.label for cell in cells),
        cells=tuple(cell.addresses["train"] for cell in cells),
        payload={
            "run": str(run.path.resolve()),
            "plugins": [str(file) for file in plugin_files()],
            "cells": [cell_to_json(cell) for cell in cells],
        },
    )


def _measure(run: RunDirectory, cells: Sequence[Cell]) -> bool:
    """Score what was decoded, and compare each loss with CE and CE with the base."""
    worked = False
    for cell in cells:
        if run.missing(cell) == ["measure"]:
            folder, wanted = run.cell_folder(cell), cell.addresses["measure"]
            completions = pd.read_parquet(folder / "completions.parquet")
            try:
                scores, metrics = measure(cell.task_plugin, completions)
            except Exception as error:  # a plugin's own: the other cells go on
                record_failure(folder, "measure", error)
                continue
            write_parquet(folder / "scores.parquet", scores, wanted)
            write_json(folder / "metrics.json", {"address": wanted, **metrics})
            worked = True
    for cell in cells:
        other = _opponent(cell, cells)
        if other is None or run.missing(cell) or run.missing(other):
            continue
        file = run.cell_folder(cell) / "comparison.json"
        wanted = f"{cell.addresses['measure']}-{other.addresses['measure']}"
        known = read_json(file)
        if known is None or known["address"] != wanted:
            scores, others = (
                pd.read_parquet(run.cell_folder(c) / "scores.parquet") for c in (cell, other)
            )
            write_json(
                file,
                {
                    "address": wanted,
                    "against": other.addresses["train"],
                    "against_loss": other.loss,
                    **compare(cell.task_plugin, scores, others),
                },
            )
            worked = True
    return worked


def _opponent(cell: Cell, cells: Sequence[Cell]) -> Cell | None:
    """CE with the same model, task and seed; for CE itself the untuned base."""
    if cell.is_base:
        return None
    wanted = BASE if cell.loss == "ce" else "ce"
    for other in cells:
        same = (other.model, other.task, other.recipe) == (cell.model, cell.task, cell.recipe)
        if same and other.loss == wanted and (wanted == BASE or other.seed == cell.seed):
            return other
    return None


def _unfinished(run: RunDirectory, cells: Sequence[Cell]) -> tuple[dict[str, str], dict[str, str]]:
    failed: dict[str, str] = {}
    skipped: dict[str, str] = {}
    for cell in cells:
        failure = run.failure(cell)
        if failure is not None:
            reasons = skipped if failure["skipped"] else failed
            reasons[cell.label] = f"{failure['stage']}: {failure['error']}"
        elif run.missing(cell):
            raise UserError(
                f"The cell {cell.label} in {run.path} did not finish and left no reason: see "
                f"{run.path / 'logs'} and run the same command again."
            )
    return failed, skipped
