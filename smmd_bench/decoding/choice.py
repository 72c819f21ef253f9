"""Which trial of a tuned cell is tested: the best on the validation split, never on the test split.

CELL/choice.json holds the choice and how each trial validated, at the epoch that was selected of
it. The metric is the task's first, which selects the epoch, too; ties go to the earlier trial.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ..experiment.cell import Cell
from ..scoring.score import score_frame
from ..scoring.statistics import interval
from ..storage.current import CurrentCell
from ..storage.files import read_parquet, write_json


def choose(cell: Cell, run: Path) -> None:
    """Write choice.json of a tuned cell, where it is missing and all trials have a selection."""
    now = cell.files(run)
    if now.choice_stamp is None or now.choice is not None:
        return
    best = cell.task_plugin.metrics()[0]
    sign = 1 if best.better == "higher" else -1
    tried = [
        {"address": trial.folder.name, "text": configuration.text, **_validated(cell, trial)}
        for configuration, trial in zip(cell.grid, now.trials, strict=True)
    ]
    chosen = max(
        tried, key=lambda line: -math.inf if line["value"] is None else sign * line["value"]
    )
    content = {"metric": best.name, "chosen": chosen["address"], "trials": tried}
    write_json(now.folder / "choice.json", {"address": now.choice_stamp, **content})


def find_trained_cell(cell: Cell, run: Path) -> Cell:
    """The cell whose weights this one tests: itself, its source, or the trial that was chosen."""
    owner = cell.owner
    home = owner.files(run).home
    if not owner.grid:
        return owner
    if home is None:
        raise RuntimeError(f"No trial of {owner.label} is chosen yet.")
    return next(trial for trial in owner.trials if trial.addresses["train"] == home.folder.name)


def _validated(cell: Cell, trial: CurrentCell) -> dict[str, Any]:
    """How a trial validated at its selected epoch: epoch, value, low, high, n."""
    assert trial.selection is not None
    metric, epoch = str(trial.selection["metric"]), int(trial.selection["best_epoch"])
    (line,) = (line for line in trial.selection["epochs"] if line["epoch"] == epoch)
    found = {"epoch": epoch, "value": line[metric], "low": None, "high": None, "n": line["n"]}
    if not trial.has_validation:
        return found
    frame = read_parquet(trial.folder / "validation.parquet").to_pandas()
    frame = frame[frame["epoch"] == epoch].drop(columns="epoch").reset_index(drop=True)
    scores = score_frame(cell.task_plugin, frame)
    bounds = interval(cell.task_plugin.metrics()[0], scores)
    return found | {"low": bounds.low, "high": bounds.high}
