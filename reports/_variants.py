"""Variants of a loss within a run: what they change, the seeds they share, what they rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from smmd_bench.errors import UserError
from smmd_bench.parameters import parameters_of
from smmd_bench.publishing.style import loss_label
from smmd_bench.registry import load_loss

from ._paper import published
from ._vision import data_source, papers_task

if TYPE_CHECKING:
    from smmd_bench.results.run import RunFrames

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


def default_of(name: str, parameter: str) -> float:
    """The default of a parameter of a loss; of several values, the first."""
    value = values_of(name, name, parameter)
    assert value is not None
    return value[0]


def of_groups(cells: pd.DataFrame, among: pd.DataFrame) -> pd.DataFrame:
    """The cells whose model and task are those of a cell of `among`."""
    known = set(zip(among["model"], among["task"], strict=True))
    pairs = zip(cells["model"], cells["task"], strict=True)
    found: pd.DataFrame = cells[pd.Series([p in known for p in pairs], cells.index, dtype="bool")]
    return found


def of_shared_seeds(cells: pd.DataFrame) -> pd.DataFrame:
    """For each model and task the cells of the seeds that all its losses have; all if none is."""
    kept = []
    for _, group in cells.groupby(GROUP, observed=True):
        seeds = [set(rows["seed"]) for _, rows in group.groupby("loss", observed=True)]
        shared = set.intersection(*seeds)
        kept.append(group[group["seed"].isin(shared)] if shared else group)
    return pd.concat(kept) if kept else cells


def sample_note(data: pd.DataFrame, cells: pd.DataFrame, of_run: pd.DataFrame) -> str:
    """A sentence with n, seeds and parse failures of the cells shown.

    `data` has their metrics; `of_run` are all cells of these losses, models and tasks: seeds that
    are not shown are named.
    """
    sizes = data.drop_duplicates("task").set_index("task")["exact_match_n"].astype(int)
    if sizes.nunique() == 1:
        n = f"{sizes.iloc[0]:,}"
    else:
        n = ", ".join(f"{size:,} ({task})" for task, size in sizes.items())
    failures = data["parse_failure_rate_value"].astype("float64").max()
    text = f"n = {n} test examples; {_named_seeds(cells)}"
    left = of_run[~of_run["address"].isin(cells["address"])]
    if len(left):
        losses = ", ".join(loss_label(str(loss)) for loss in left["loss"].drop_duplicates())
        text += (
            f", those that every row has ({losses}: the run has {_named_seeds(left)} besides, "
            "which are not counted here)"
        )
    if pd.notna(failures):
        text += f"; at most {failures:.1f} % of the completions of a cell without a number"
    return f"{text}."


def published_beside(run: RunFrames, table: str, row: dict[str, Any]) -> float | None:
    """The paper's accuracy for the model, task and loss of a row, where it is on its own data."""
    task = papers_task(str(row["task"]), data_source(run, str(row["task"])))
    if task is None:
        return None
    found = published(table, model=str(row["model"]), task=task, loss=str(row["loss"]))
    return found.get("exact_match")


def _named_seeds(cells: pd.DataFrame) -> str:
    seeds = sorted(cells["seed"].unique())
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
