"""Tables of figures: rows of a model and task, and a column for each loss that fits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.publishing.tables import DASH

from ._cells import REFERENCE, why_missing
from ._panels import of_pair, pairs

LOSSES = 6
"""Columns of losses at most; the CSV of the data has all."""
_FIRST, _LAST = (REFERENCE, "smmd"), "base"


def row_table(rows: Iterable[dict[str, str]] | pd.DataFrame, title: str) -> pd.DataFrame:
    """The rows as a table, without the columns Model and Task where there is only one."""
    table = pd.DataFrame(rows).fillna(DASH)
    table = table.drop(columns=[name for name in ("Model", "Task") if table[name].nunique() == 1])
    table.attrs["title"] = title
    return table


def row_head(row: Any) -> dict[str, str]:
    """The columns Model, Task and Loss of a row with these, as a table has them."""
    names = {"Model": model_label(str(row["model"])), "Task": str(row["task"])}
    return {**names, "Loss": loss_label(str(row["loss"]))}


def column_table(
    data: pd.DataFrame, row: str, cells: pd.DataFrame, losses: Iterable[str]
) -> pd.DataFrame:
    """A row for each model, task and value of `row`, with columns of the `text` of each `column`.

    The first columns are those of `losses`, by their labels. A loss without a result for a model
    and task has the reason in the first of their rows.
    """
    labels = {loss: loss_label(loss) for loss in losses}
    others = [name for name in data["column"].unique() if name.startswith("Paper ")]
    table = data.pivot(index=["model", "task", row], columns="column", values="text")
    table = table.reindex(columns=[*labels.values(), *others]).astype("object")
    table = table.fillna(DASH).reset_index()
    for pair in pairs(data):
        there, first = of_pair(cells, pair), of_pair(table, pair).index[0]
        for loss, label in labels.items():
            if why := why_missing(there[there["loss"] == loss]):
                table.loc[first, label] = why
    table = table.rename(columns={"model": "Model", "task": "Task"})
    table["Model"] = [model_label(str(model)) for model in table["Model"]]
    return table


def losses_with_columns(losses: Iterable[str]) -> tuple[list[str], str]:
    """The losses that fit, in their order, and a sentence on those that do not (empty: all do).

    Cross-entropy and SMMD come first, variants and then the untuned model last.
    """
    every = list(losses)
    ranked = sorted(every, key=lambda x: (x not in _FIRST, x == _LAST, "[" in x))
    shown = [loss for loss in every if loss in ranked[:LOSSES]]
    left = ", ".join(loss_label(loss) for loss in every if loss not in shown)
    return shown, f"Only in the CSV of the data: {left}." if left else ""
