"""scores.parquet and metrics.json of a cell, from completions that are current."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..scoring.measure import measure
from ..storage.files import write_json, write_parquet
from .run_directory import record_failure

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Task
    from ..storage.current import CurrentCell


def measure_cell(now: CurrentCell, task: Task, completions: pd.DataFrame) -> Exception | None:
    """Score a cell; an error of the task's own code is recorded and returned."""
    assert now.measure_stamp is not None
    try:
        scores, metrics = measure(task, completions)
    except Exception as error:
        record_failure(now.folder, "measure", error)
        return error
    write_parquet(now.folder / "scores.parquet", scores, now.measure_stamp)
    write_json(now.folder / "metrics.json", {"address": now.measure_stamp, **metrics})
    return None
