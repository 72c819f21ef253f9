"""Which epoch of a cell is tested: the best by the task's first metric on the validation split."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..scoring.score import score_frame
from ..storage.addresses import digest_of_weights
from ..storage.files import DamagedError, making, read_parquet, remove_tree, write_json
from .choice import choose

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Metric
    from ..experiment.cell import Cell
    from ..storage.cell import StoredCell


def select(cell: Cell, validation: pd.DataFrame) -> dict[str, Any]:
    """The content of selection.json: the best epoch, and metrics of every epoch.

    `validation` has the columns of a completions frame and `epoch`. Ties go to the earlier epoch.
    """
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
        choose(cell, run)
        return
    now = cell.stored(run)
    if now.validated is not None and now.has_validation and now.selection is None:
        assert now.selected is not None
        chosen = select(cell, read_parquet(now.validated / "validation.parquet").to_pandas())
        with making(now.selected) as folder:
            write_json(folder / "selection.json", chosen)
    if not cell.recipe.keep_epochs:
        _keep_selected(cell.stored(run))


def _keep_selected(now: StoredCell) -> None:
    """Remove the weights of all epochs but the selected one, where that is there."""
    if now.tested is None or now.checkpoint is None:
        return
    for epoch in now.weights:
        if epoch != now.tested.epoch:
            remove_tree(now.epoch(epoch))


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
