"""What a table says of its tuned rows: how many settings were tried, and which were chosen."""

from __future__ import annotations

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.publishing.style import loss_label, model_label

from ._cells import REFERENCE

LOSS = ["model", "task", "loss"]


def tuning_note(run: Run, cells: pd.DataFrame) -> str:
    """A sentence on the budget, what was chosen, and what the tuned rows are compared with; empty
    where none of the cells is tuned."""
    data = run.tuning
    data = data[data["address"].isin(cells["address"])]
    if data.empty:
        return ""
    several = {name: data[name].nunique() > 1 for name in ("model", "task")}
    found = []
    for (model, task, loss), group in data.groupby(LOSS, observed=True):
        where = f" on {task}" * several["task"]
        where += f" with {model_label(str(model))}" * several["model"]
        found.append(f"{loss_label(str(loss))}{where} {chosen_settings(group)}")
    return (
        f"Tuned: the best of {budgets(data)} by validation, for each seed: {'; '.join(found)}. "
        f"Tuned losses are compared with {loss_label(REFERENCE)} tuned over as many."
    )


def budgets(data: pd.DataFrame) -> str:
    """`5 settings a loss`; the numbers of each where they differ, as no one command allows."""
    sizes = data.groupby([*LOSS, "seed"], observed=True).size()
    by_loss = sizes.groupby("loss", observed=True).max()
    if by_loss.nunique() == 1:
        return f"{by_loss.iloc[0]} settings a loss"
    named = ", ".join(f"{loss_label(str(loss))} {size}" for loss, size in by_loss.items())
    return f"unequal numbers of settings ({named})"


def chosen_settings(group: pd.DataFrame) -> str:
    """`lambda=3 (4 of 5 seeds), lambda=1 (1 of 5)` of the trials of one loss."""
    seeds = group["seed"].nunique()
    chosen = group.loc[group["chosen"], "text"].value_counts()
    if chosen.empty:
        return "not chosen yet"
    if seeds == 1:
        return str(chosen.index[0])
    first, *others = [f"{text} ({count} of {seeds}" for text, count in chosen.items()]
    return ", ".join([f"{first} seeds)", *(f"{other})" for other in others)])
