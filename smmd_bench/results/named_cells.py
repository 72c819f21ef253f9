"""What a user may call the cells of a run by: model, task, loss and seed."""

from collections.abc import Mapping
from typing import Any

from ..errors import UserError, did_you_mean
from .frames import RunFrames

SHORT = {"model": "model_label", "task": "task_name", "loss": "loss_name"}
"""The columns with names that also fit: those without brackets mean any parameters."""


def require_named(run: RunFrames, filters: Mapping[str, Any]) -> None:
    """Raise UserError for the first value (None: not asked for) that no cell of the run has.

    It reads the cell.json files alone: a mistyped name is answered before pandas is imported.
    """
    for column, value in filters.items():
        names = (column, SHORT.get(column, column))
        known = {str(said[name]) for said in run.rows for name in names if name in said}
        if value is not None and str(value) not in known:
            near = did_you_mean(str(value), known)
            raise UserError(f"No cell of {run.path} has the {column} '{value}': {near}")
