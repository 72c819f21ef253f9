"""Which epoch of a cell is tested: the best by the task's first metric on the validation split."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .score import score_frame

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Metric
    from ..experiment import Cell


def select(cell: Cell, validation: pd.DataFrame) -> dict[str, Any]:
    """The content of `selection.json`, from the validation completions of every epoch.

    `validation` has the columns of a completions frame and `epoch`. Every metric of every epoch is
    kept (None where it does not exist); ties go to the earlier epoch.
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
    return {
        "address": cell.addresses["select"],
        "metric": best.name,
        "best_epoch": chosen["epoch"],
        "epochs": lines,
    }


def _value(metric: Metric, scores: pd.DataFrame) -> float | None:
    rows = scores if metric.subset is None else scores[scores[metric.subset]]
    if rows.empty:
        return None
    value = float(metric.statistic(*(rows[column].to_numpy(float) for column in metric.columns)))
    return value if math.isfinite(value) else None
