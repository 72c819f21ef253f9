"""CELL/comparison.json: how a measured cell differs from another one, on the same examples."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..experiment import BASE
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


class CellKey(NamedTuple):
    """What tells a cell from the others of a run; `trained_on`: of a test of transfer."""

    model: str
    task: str
    trained_on: str | None
    recipe: Hashable
    loss: str
    seed: int


def opponents(keys: Collection[CellKey]) -> dict[CellKey, CellKey]:
    """What each trained cell is compared with, where that is there: CE of the same recipe and
    seed; of CE, and where CE has no seed at all, the untuned base."""
    with_ce = {key._replace(seed=0) for key in keys if key.loss == "ce"}
    found = {}
    for key in keys:
        other = key._replace(loss="ce")
        if key.loss == "ce" or other._replace(seed=0) not in with_ce:
            other = key._replace(trained_on=None, loss=BASE, seed=0)
        if key.loss != BASE and other in keys:
            found[key] = other
    return found


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
