"""Which trial of a tuned cell is tested: the best on the validation split, never on the test split.

The tuned cell's selection.json holds the choice and how each trial validated, at the epoch that was
selected of it. The metric is the task's first, which selects the epoch, too; ties go to the earlier
trial.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ..experiment.cell import Cell
from ..scoring.score import score_frame
from ..scoring.statistics import interval
from ..storage.cell import StoredCell
from ..storage.files import making, read_parquet, write_json


def choose(cell: Cell, run: Path) -> None:
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


def find_trained_cell(cell: Cell, run: Path) -> Cell:
    """The cell whose weights this one tests: itself, its source, or the trial that was chosen."""
    owner = cell.owner
    if not owner.grid:
        return owner
    choice = owner.stored(run).choice
    if choice is None:
        raise RuntimeError(f"No trial of {owner.label} is chosen yet.")
    return owner.trials[int(choice["chosen"])]


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
