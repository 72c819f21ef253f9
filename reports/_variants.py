"""Variants of a loss within a run: what they change, and the seeds they share."""

from __future__ import annotations

from typing import Any

import pandas as pd

from smmd_bench.contracts import Run, UserError
from smmd_bench.plugin_system.parameters import parameters_of
from smmd_bench.plugin_system.registry import load_loss

GROUP = ["model", "task"]


def values_of(loss: str, name: str, parameter: str) -> tuple[float, ...] | None:
    """The value or values of a parameter, if the spec is of that loss and changes nothing else.

    None: it is another loss, changes another parameter, or its plugin is not here any more.
    """
    if loss.partition("[")[0] != name:
        return None
    try:
        plugin = load_loss(loss)
    except UserError:
        return None
    known = parameters_of(type(plugin))
    if any(getattr(plugin, p.field) != p.default for p in known.values() if p.name != parameter):
        return None
    value: Any = getattr(plugin, known[parameter].field)
    return value if isinstance(value, tuple) else (value,)


def unreadable(run: Run, name: str) -> str | None:
    """Why the parameters of a loss of the run cannot be read, such as that torch is not installed;
    None: they can, or the run has no such loss."""
    if not any(str(loss).partition("[")[0] == name for loss in run.cells["loss"].cat.categories):
        return None
    try:
        load_loss(name)
    except UserError as error:
        return str(error).rstrip(".")
    return None


def of_groups(cells: pd.DataFrame, among: pd.DataFrame) -> pd.DataFrame:
    """The cells whose model and task are those of a cell of `among`."""
    known = set(zip(among["model"], among["task"], strict=True))
    pairs = zip(cells["model"], cells["task"], strict=True)
    found: pd.DataFrame = cells[pd.Series([p in known for p in pairs], cells.index, dtype="bool")]
    return found


def of_shared_seeds(cells: pd.DataFrame) -> pd.DataFrame:
    """For each model and task the cells of the seeds that all its losses have; all if none is."""
    of_task, of_seed = (
        cells.groupby(key, observed=True)["loss"].transform("nunique")
        for key in (GROUP, [*GROUP, "seed"])
    )
    shared = of_task == of_seed
    none = ~shared.groupby([cells[name] for name in GROUP], observed=True).transform("any")
    return cells[shared | none]
