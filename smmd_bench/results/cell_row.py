"""A cell as a row of `RunFrames.cells`: what it is, and its status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..storage.cell import StoredCell

CELL_COLUMNS = (
    "address", "model", "model_label", "task", "task_name", "loss", "loss_name", "seed", "params",
    "trained_on", "status", "stage", "error", "recipe", "sizes",
)  # fmt: skip
METRIC_COLUMNS = ("metric", "value", "low", "high", "n")
"""Of `RunFrames.metrics` and `comparisons`, after those that tell the cell."""


def cell_row(content: Mapping[str, Any], cell: StoredCell) -> dict[str, Any]:
    """The row of the cell that a cell.json describes."""
    failure = cell.failure
    status = "pending" if cell.metrics is None else "done"
    if failure:
        status = "skipped" if failure.get("skipped") else "failed"
    return {
        **{column: content.get(column) for column in CELL_COLUMNS},
        "model_label": content.get("model_label") or content["model"],
        "recipe": content.get("recipe") or {},
        "sizes": (content.get("data") or {}).get("sizes", {}),
        "status": status,
        "stage": failure.get("stage"),
        "error": failure.get("error"),
    }
