"""Which weights a cell tests: the best epoch and, of a tuned cell, the best trial.

A metric on the validation split decides, never the test split: the recipe's `select_by`, or that of
the task, or else the task's first one. Ties are broken by the task's error, then by the earlier
epoch or trial. An answer that cannot be read counts in an error as the best constant answer does.
The tuned cell's selection.json says how each trial validated, at the epoch that was selected of it.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..contracts import Metric
from ..experiment.cell import Cell
from ..scoring.constant import answer_by_constant, constant_value
from ..scoring.deciding import selecting_metrics
from ..scoring.score import score_frame
from ..scoring.statistics import interval
from ..storage.addresses import digest_of_weights
from ..storage.cell import StoredCell
from ..storage.files import (
    DamagedError,
    read_parquet,
    remove_tree,
    write_folder,
    write_json,
)

if TYPE_CHECKING:
    import pandas as pd


def select(cell: Cell, validation: pd.DataFrame) -> dict[str, Any]:
    """The content of selection.json: the best epoch, and metrics of every epoch. `validation` has
    the columns of a completions frame and `epoch`."""
    task = cell.task_plugin
    metrics = selecting_metrics(task, cell.recipe.select_by)
    lines: list[dict[str, Any]] = []
    ranks: list[tuple[float, ...]] = []

    for epoch, completions in validation.groupby("epoch", sort=True):
        scores = score_frame(
            task, completions.drop(columns="epoch").reset_index(drop=True)
        )
        values = {metric.name: _value(metric, scores) for metric in task.metrics()}
        lines.append({"epoch": int(str(epoch)), "n": len(scores), **values})
        ranks.append(rank(metrics, scores))

    # Of equal ranks `index` finds the first, which is the earlier epoch.
    best = lines[ranks.index(max(ranks))]
    return {
        "metric": metrics[0].name,
        "ties": [metric.name for metric in metrics[1:]],
        "best_epoch": best["epoch"],
        "epochs": lines,
        "notes": _describe_floor(metrics, lines, scores["answer"].to_numpy(float)),
    }


def rank(metrics: Sequence[Metric], scores: pd.DataFrame) -> tuple[float, ...]:
    """How good a scored frame is by each of these metrics, larger is better."""
    answered = answer_by_constant(scores)
    values = []
    for metric in metrics:
        # An error is over what parses: leaving out hard examples must not make an epoch better.
        rows = answered if metric.subset == "valid" else scores
        values.append(_value(metric, rows))
    return _signed(metrics, values)


def _signed(
    metrics: Sequence[Metric], values: Sequence[float | None]
) -> tuple[float, ...]:
    """The values with a sign by which larger is better; a missing one is the worst."""
    signs = [1 if metric.better == "higher" else -1 for metric in metrics]
    return tuple(
        -math.inf if value is None else sign * value
        for sign, value in zip(signs, values, strict=True)
    )


def _describe_floor(
    metrics: Sequence[Metric],
    lines: Sequence[dict[str, Any]],
    answers: NDArray[np.float64],
) -> list[str]:
    """A note where no epoch is better than answering nothing, or always the same."""
    best = metrics[0]
    values = [line[best.name] for line in lines]
    # An accuracy is 0 where nothing is answered right.
    if best.better == "higher":
        if any(value is None or value > 0 for value in values):
            return []
        by = f"by {metrics[1].label}" if len(metrics) > 1 else "as the first"
        return [
            f"{best.label} is 0 on validation at every epoch: one was selected {by}."
        ]

    constant = constant_value(best, answers)
    if constant is None or any(
        value is not None and value < constant for value in values
    ):
        return []
    return [
        f"No epoch's {best.label} on validation is below {constant:.4g}, that of the best constant "
        "answer."
    ]


def select_weights(cell: Cell, run: Path) -> None:
    """Do what needs no engine: select an epoch by what is validated, and keep its weights alone; of
    a tuned cell, choose among its trials, which are settled before."""
    if cell.is_base or cell.source is not None:
        return
    stored = cell.stored(run)
    decision = stored.choice if cell.grid else stored.selection
    content = None
    if decision is None:
        content = _decide(cell, stored)
    if content is not None:
        assert stored.selected is not None
        with write_folder(stored.selected) as folder:
            write_json(folder / "selection.json", content)

    # The weights of a tuned cell are those of its trials, each of which keeps its own.
    if not cell.grid and not cell.recipe.keep_epochs:
        _keep_selected(cell.stored(run))


def foresee(cell: Cell, stored: StoredCell) -> None:
    """Let a cell's folders be as `select_weights` will make them of what is validated; on the disk
    nothing changes.

    stored: as they are, of which nothing that follows from a selection was asked for.
    """
    if cell.source is not None:
        assert stored.source is not None
        foresee(cell.source, stored.source)
        return
    for trial, stored_trial in zip(cell.trials, stored.trials, strict=True):
        foresee(trial, stored_trial)
    name = "choice" if cell.grid else "selection"
    if not cell.is_base and getattr(stored, name) is None:
        vars(stored)[name] = _decide(cell, stored)  # where cached_property looks


def _decide(cell: Cell, stored: StoredCell) -> dict[str, Any] | None:
    """The content of selection.json; None: what it follows from is not there yet."""
    if stored.selected is None:
        return None
    if cell.grid:
        return _choose(cell, stored)
    if not stored.has_validation:
        return None
    return select(cell, _read_validation(stored))


def _choose(cell: Cell, stored: StoredCell) -> dict[str, Any]:
    """The choice among the trials of a tuned cell, all of which have a selection."""
    metrics = selecting_metrics(cell.task_plugin, cell.recipe.select_by)
    first_metric = metrics[0]
    lines: list[dict[str, Any]] = []
    ranks: list[tuple[float, ...]] = []
    for configuration, trial in zip(cell.grid, stored.trials, strict=True):
        assert trial.selection is not None
        best_epoch = int(trial.selection["best_epoch"])
        (epoch_line,) = (
            line for line in trial.selection["epochs"] if line["epoch"] == best_epoch
        )
        interval_of_trial: dict[str, float | None] = {"low": None, "high": None}
        values = [epoch_line[metric.name] for metric in metrics]
        trial_rank = _signed(metrics, values)

        # The completions may have been removed since; what was selected of them stays.
        if trial.has_validation:
            scores = _score_epoch(cell, trial, best_epoch)
            bounds = interval(first_metric, scores)
            interval_of_trial = {"low": bounds.low, "high": bounds.high}
            trial_rank = rank(metrics, scores)
        lines.append(
            {
                "address": trial.address,
                "text": configuration.text,
                "epoch": best_epoch,
                "value": epoch_line[first_metric.name],
                "n": epoch_line["n"],
                **interval_of_trial,
            }
        )
        ranks.append(trial_rank)

    chosen = ranks.index(max(ranks))
    return {"metric": first_metric.name, "chosen": chosen, "trials": lines}


def _score_epoch(cell: Cell, stored: StoredCell, epoch: int) -> pd.DataFrame:
    """Score the validation split with the weights of one epoch."""
    completions = _read_validation(stored)
    completions = completions[completions["epoch"] == epoch].drop(columns="epoch")
    return score_frame(cell.task_plugin, completions.reset_index(drop=True))


def _read_validation(stored: StoredCell) -> pd.DataFrame:
    assert stored.validated is not None
    frame: pd.DataFrame = read_parquet(
        stored.validated / "validation.parquet"
    ).to_pandas()
    return frame


def _keep_selected(stored: StoredCell) -> None:
    """Remove the weights of all epochs but the selected one, where that is there."""
    if stored.tested is None or stored.checkpoint is None:
        return
    for epoch in stored.weights:
        if epoch != stored.tested.epoch:
            remove_tree(stored.epoch(epoch))

    # a kill left what was being removed
    for half in stored.trained.glob("epochs/.*.part"):
        shutil.rmtree(half)


def find_trained_cell(cell: Cell, run: Path) -> Cell:
    """The cell whose weights this one tests: itself, its source, or the trial that was chosen."""
    owner = cell.owner
    if not owner.grid:
        return owner
    choice = owner.stored(run).choice
    if choice is None:
        raise RuntimeError(f"No trial of {owner.label} is chosen yet.")
    return owner.trials[int(choice["chosen"])]


def require_whole(folder: Path, digest: str) -> None:
    """Raise DamagedError where the weights in a folder are not those of the digest; they are
    removed then, and trained again."""
    if digest_of_weights(folder) != digest:
        remove_tree(folder)
        raise DamagedError(folder, "damaged", "run the same command again")


def _value(metric: Metric, scores: pd.DataFrame) -> float | None:
    rows = scores if metric.subset is None else scores[scores[metric.subset]]
    if rows.empty:
        return None
    columns = [rows[column].to_numpy(float) for column in metric.columns]
    value = float(metric.statistic(*columns))
    return value if math.isfinite(value) else None
