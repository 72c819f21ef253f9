"""Which loss of a table is best, and better than what it is compared with, all tested at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ._cells import KEY, REFERENCE

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


def bold_best(data: pd.DataFrame, column: str) -> list[tuple[int, str]]:
    """`table.attrs["bold"]` of a table with one row a model, task and loss of tested cells."""
    best = data.groupby(KEY, observed=True)["best"].first()
    return [(at, column) for at, found in enumerate(best) if found]


def with_tests(
    data: pd.DataFrame, other: str = REFERENCE, of: pd.DataFrame | None = None
) -> pd.DataFrame:
    """`data` with p, p_holm and best of `against_reference` in each row of a loss.

    `of` are the rows that are tested, if not all are.
    """
    tests = against_reference(data if of is None else of, other)
    return data.merge(tests[[*KEY, "p", "p_holm", "best"]], how="left", on=KEY)


def against_reference(data: pd.DataFrame, other: str = REFERENCE) -> pd.DataFrame:
    """One row a model, task and loss of `metrics_beside_published`: difference, p, p_holm, best.

    `difference` is the mean over the seeds and `p` their largest; `p_holm` is corrected over the
    losses of a model and task. `best` is the largest difference of these, if its p_holm is below
    `LEVEL` and its differences are above zero in every seed.
    """
    compared = data["against_loss"] == other
    values = data.assign(
        difference=data["difference"].astype("float64").where(compared),
        p=data["difference_p"].astype("float64").where(compared),
    )
    groups = values.groupby(KEY, observed=True)
    found = groups.agg(
        difference=("difference", "mean"), least=("difference", "min"), p=("p", "max")
    ).reset_index()
    families = found.groupby(GROUP, observed=True)
    found["p_holm"] = families["p"].transform(holm)
    largest = found["difference"] == families["difference"].transform("max")
    found["best"] = largest & (found["p_holm"] < LEVEL) & (found["least"] > 0)
    return found.drop(columns="least")
