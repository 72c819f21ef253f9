"""Which weights a cell tests: the best epoch and, of a tuned cell, the best trial.

The task's first metric on the validation split decides, never the test split; ties go to the
earlier epoch or trial. The tuned cell's selection.json says how each trial validated, at the epoch
that was selected of it.
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contracts import Metric
from ..experiment.cell import Cell
from ..scoring.score import score_frame
from ..scoring.statistics import interval
from ..storage.addresses import digest_of_weights
from ..storage.cell import StoredCell
from ..storage.files import DamagedError, making, read_parquet, remove_tree, write_json

if TYPE_CHECKING:
    import pandas as pd


def select(cell: Cell, validation: pd.DataFrame) -> dict[str, Any]:
    """The content of selection.json: the best epoch, and metrics of every epoch. `validation` has
    the columns of a completions frame and `epoch`."""
    task = cell.task_plugin
    lines: list[dict[str, Any]] = []
    for epoch, completions in validation.groupby("epoch", sort=True):
        scores = score_frame(task, completions.drop(columns="epoch").reset_index(drop=True))
        values = {metric.name: _value(metric, scores) for metric in task.metrics()}
        lines.append({"epoch": int(str(epoch)), "n": len(scores), **values})
    best = task.metrics()[0]
    sign = 1 if best.better == "higher" else -1
    chosen = max(
        lines, key=lambda line: -math.inf if line[best.name] is None else sign * line[best.name]
    )
    return {"metric": best.name, "best_epoch": chosen["epoch"], "epochs": lines}


def settle(cell: Cell, run: Path) -> None:
    """Do what needs no engine: select an epoch by what is validated, and keep its weights alone; of
    a tuned cell, choose among its trials, which are settled before."""
    if cell.is_base or cell.source is not None:
        return
    if cell.grid:
        _choose(cell, run)
        return
    now = cell.stored(run)
    if now.validated is not None and now.has_validation and now.selection is None:
        assert now.selected is not None
        chosen = select(cell, read_parquet(now.validated / "validation.parquet").to_pandas())
        with making(now.selected) as folder:
            write_json(folder / "selection.json", chosen)
    if not cell.recipe.keep_epochs:
        _keep_selected(cell.stored(run))


def _choose(cell: Cell, run: Path) -> None:
    """Choose among the trials of a tuned cell, where that is missing and all have a selection."""
    now = cell.stored(run)
    if now.selected is None or now.choice is not None:
        return
    best = cell.task_plugin.metrics()[0]
    sign = 1 if best.better == "higher" else -1
    tried = [
        {"address": trial.address, "text": configuration.text, **_validated(cell, trial)}
        for configuration, trial in zip(cell.grid, now.trials, strict=True)
    ]
    values = [-math.inf if line["value"] is None else sign * line["value"] for line in tried]
    content = {"metric": best.name, "chosen": values.index(max(values)), "trials": tried}
    with making(now.selected) as folder:
        write_json(folder / "selection.json", content)


def _validated(cell: Cell, trial: StoredCell) -> dict[str, Any]:
    """How a trial validated at its selected epoch: epoch, value, low, high, n."""
    assert trial.selection is not None
    metric, epoch = str(trial.selection["metric"]), int(trial.selection["best_epoch"])
    (line,) = (line for line in trial.selection["epochs"] if line["epoch"] == epoch)
    found = {"epoch": epoch, "value": line[metric], "low": None, "high": None, "n": line["n"]}
    if not trial.has_validation:
        return found
    assert trial.validated is not None
    frame = read_parquet(trial.validated / "validation.parquet").to_pandas()
    frame = frame[frame["epoch"] == epoch].drop(columns="epoch").reset_index(drop=True)
    scores = score_frame(cell.task_plugin, frame)
    bounds = interval(cell.task_plugin.metrics()[0], scores)
    return found | {"low": bounds.low, "high": bounds.high}


def _keep_selected(now: StoredCell) -> None:
    """Remove the weights of all epochs but the selected one, where that is there."""
    if now.tested is None or now.checkpoint is None:
        return
    for epoch in now.weights:
        if epoch != now.tested.epoch:
            remove_tree(now.epoch(epoch))
    for half in now.trained.glob("epochs/.*.part"):  # a kill left what was being removed
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
    value = float(metric.statistic(*(rows[column].to_numpy(float) for column in metric.columns)))
    return value if math.isfinite(value) else None
