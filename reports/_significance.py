"""Which losses of a table are better than cross-entropy, with all of them tested at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._cells import REFERENCE

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


BOLD = (
    "Bold (on a terminal *): better than CE, p < 0.05 after Holm's correction over the losses of a "
    "model and task."
)


def bold_better(data: pd.DataFrame, column: str) -> list[tuple[int, str]]:
    """`table.attrs["bold"]` of a table with one row a model, task and loss of `data`, in order."""
    tested = against_reference(data)
    keys = [*GROUP, "loss"]
    better: dict[Any, bool] = dict(
        zip(map(tuple, tested[keys].to_numpy()), tested["better"], strict=True)
    )
    rows = data.groupby(keys, observed=True).groups
    return [(at, column) for at, key in enumerate(rows) if better[key]]


def against_reference(data: pd.DataFrame) -> pd.DataFrame:
    """One row a model, task and loss: difference, p, p_holm, and whether it is `better`.

    `data` has one row a cell, as `metrics_beside_published` makes it. `difference` is the mean over
    the seeds; `p` their largest, so that it speaks for a difference in every seed; `p_holm` is
    corrected over the losses of a model and task; `better` is a p_holm below `LEVEL` and a
    difference above zero in every seed. What was not compared with cross-entropy is missing.
    """
    compared = data["against_loss"] == REFERENCE
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
