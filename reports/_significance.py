"""Which losses of a table are better than what they are compared with, all tested at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from smmd_bench.publishing.style import loss_label

from ._cells import P_HOLM, REFERENCE

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEVEL = 0.05
"""A corrected p below it counts as significant."""
GROUP = ["model", "task"]


def holm(p_values: Sequence[float] | pd.Series[float]) -> NDArray[np.float64]:
    """The p-values of one family, corrected by Holm; missing ones stay so and do not count."""
    from statsmodels.stats.multitest import multipletests

    p = np.asarray(p_values, dtype=np.float64)
    found = np.isfinite(p)
    adjusted = np.full(p.shape, np.nan)
    if found.any():
        adjusted[found] = multipletests(p[found], method="holm")[1]
    return adjusted


def significance_note(other: str, *, several: bool) -> str:
    """Sentences on p and on what is bold in a table whose rows are compared with `other`."""
    opponent = loss_label(other)
    of_seeds = ", the largest p of the seeds" if several else ""
    in_every = " in every seed" if several else ""
    return (
        f"{P_HOLM}: McNemar's exact test against {opponent}{of_seeds}, corrected by Holm over the "
        "losses of this table for each model and task. Bold (on a terminal *): better than "
        f"{opponent}{in_every}, with a corrected p below {LEVEL}."
    )


def bold_better(data: pd.DataFrame, column: str) -> list[tuple[int, str]]:
    """`table.attrs["bold"]` of a table with one row a model, task and loss of `tested` cells."""
    better = data.groupby([*GROUP, "loss"], observed=True)["better"].first()
    return [(at, column) for at, found in enumerate(better) if found]


def with_tests(
    data: pd.DataFrame, other: str = REFERENCE, of: pd.DataFrame | None = None
) -> pd.DataFrame:
    """`data` with p, p_holm and better of `against_reference` in each row of a loss.

    `of` are the rows whose differences are with_tests, where these are not all.
    """
    key = [*GROUP, "loss"]
    tests = against_reference(data if of is None else of, other)
    tests = tests[[*key, "p", "p_holm", "better"]]
    return data.merge(tests, how="left", on=key)


def against_reference(data: pd.DataFrame, other: str = REFERENCE) -> pd.DataFrame:
    """One row a model, task and loss: difference, p, p_holm, and whether it is `better`.

    `data` has one row a cell, as `metrics_beside_published` makes it. `difference` is the mean over
    the seeds; `p` their largest, so that it speaks for a difference in every seed; `p_holm` is
    corrected over the losses of a model and task; `better` is a p_holm below `LEVEL` and a
    difference above zero in every seed. What was not compared with `other` is missing.
    """
    compared = data["against_loss"] == other
    values = data.assign(
        difference=data["difference"].astype("float64").where(compared),
        p=data["difference_p"].astype("float64").where(compared),
    )
    groups = values.groupby([*GROUP, "loss"], observed=True)
    found = groups.agg(
        difference=("difference", "mean"), least=("difference", "min"), p=("p", "max")
    ).reset_index()
    found["p_holm"] = found.groupby(GROUP, observed=True)["p"].transform(holm)
    found["better"] = (found["p_holm"] < LEVEL) & (found["least"] > 0)
    return found.drop(columns="least")
