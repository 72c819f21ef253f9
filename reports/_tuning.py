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


def at_the_ends(data: pd.DataFrame) -> str:
    """A sentence that names the losses whose chosen value is the smallest or largest of at least
    three that were tried, for at least half of the seeds; empty where there is none."""
    found = []
    for (_, _, loss), group in data.groupby(LOSS, observed=True):
        tried = pd.DataFrame([dict(p.split("=", 1) for p in t.split(",")) for t in group["text"]])
        for name, values in tried.items():
            values = pd.to_numeric(values, errors="coerce").set_axis(group.index)
            if values.nunique() < 3 or values.isna().any():
                continue
            chosen = values[group["chosen"]]
            for end in (values.min(), values.max()):
                if len(chosen) and 2 * (chosen == end).sum() >= len(chosen):
                    found.append(f"{loss_label(str(loss))} {name}={end:g}")
    if not found:
        return ""
    named = ", ".join(dict.fromkeys(found))
    return f"At an end of the values tried, so that a better one may lie beyond: {named}."
