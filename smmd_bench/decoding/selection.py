"""Which epoch of a cell is tested: the best by the task's first metric on the validation split."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..scoring.score import score_frame
from ..storage.addresses import digest_of_weights
from ..storage.files import DamagedError, read_parquet, write_json
from .choice import choose

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Metric
    from ..experiment.cell import Cell
    from ..storage.current import CurrentCell


def select(cell: Cell, validation: pd.DataFrame) -> dict[str, Any]:
    """The content of selection.json, except its stamp: the best epoch, and metrics of every epoch.

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
    """Do what needs no engine: select again after a change of parser or metric, and keep the
    selected weights alone; of a tuned cell, choose among its trials, which are settled before."""
    if cell.is_base or cell.source is not None:
        return
    if cell.grid:
        choose(cell, run)
        return
    now = cell.files(run)
    if now.receipt is not None and now.selection is None and now.has_validation:
        chosen = select(cell, read_parquet(now.folder / "validation.parquet").to_pandas())
        write_json(now.folder / "selection.json", {"address": now.selection_stamp, **chosen})
    _keep_selected(cell.files(run), keep_epochs=cell.recipe.keep_epochs)


def _keep_selected(now: CurrentCell, *, keep_epochs: bool) -> None:
    """Make `checkpoint/` of the selected epoch's weights, and remove all epochs unless they are to
    be kept. Nothing is done while no epoch is selected, or the weights are not there."""
    if now.tested is None or now.is_base:
        return
    final, epochs = now.folder / "checkpoint", now.folder / "epochs"
    if now.checkpoint is None:
        if not now.has_epoch(now.tested.epoch):
            return
        chosen = epochs / str(now.tested.epoch)
        if keep_epochs:
            copy = now.folder / ".checkpoint.part"
            shutil.rmtree(copy, ignore_errors=True)
            chosen = shutil.copytree(chosen, copy)
        shutil.rmtree(final, ignore_errors=True)
        chosen.rename(final)
    for leftover in () if keep_epochs else ("epochs", "training"):
        shutil.rmtree(now.folder / leftover, ignore_errors=True)


def require_whole(folder: Path, digest: str) -> None:
    """Raise DamagedError where the weights in a folder are not those of the digest; they count as
    absent then, and are trained again."""
    if digest_of_weights(folder) != digest:
        (folder / "canary.json").unlink(missing_ok=True)
        raise DamagedError(folder, "damaged", "run the same command again")


def _value(metric: Metric, scores: pd.DataFrame) -> float | None:
    rows = scores if metric.subset is None else scores[scores[metric.subset]]
    if rows.empty:
        return None
    value = float(metric.statistic(*(rows[column].to_numpy(float) for column in metric.columns)))
    return value if math.isfinite(value) else None
