"""CELL/comparison.json: how a measured cell differs from another one, on the same examples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..results.files import read_json, write_json
from .measure import compare

if TYPE_CHECKING:
    from ..contracts import Task


@dataclass(frozen=True, slots=True)
class Measured:
    """A cell with scores: its folder, how comparisons name it, and its measure address."""

    folder: Path
    name: str
    loss: str
    address: str


def write_comparison(task: Task, cell: Measured, other: Measured) -> bool:
    """Write how a cell differs from another, unless that is there; whether it was not."""
    file = cell.folder / "comparison.json"
    wanted = f"{cell.address}-{other.address}"
    if (read_json(file) or {}).get("address") == wanted:
        return False
    import pandas as pd

    scores, others = (pd.read_parquet(c.folder / "scores.parquet") for c in (cell, other))
    against = {"against": other.name, "against_loss": other.loss}
    write_json(file, {"address": wanted, **against, **compare(task, scores, others)})
    return True
