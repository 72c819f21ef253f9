"""Which loss of a table is best, and better than what it is compared with, all tested at once."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ._cells import KEY, REFERENCE

LEVEL = 0.05
"""A corrected p below it counts as significant."""
_NORMAL = 1.959964
"""Half of a 95 % interval in standard errors."""
TESTS = (
    "Of several seeds p is that of Student's t-test of their paired differences, which speaks of "
    "other seeds on this test set; of one seed that of McNemar's exact test for exact match, and "
    "by the bootstrap's standard error for other metrics, which speaks of other test sets. Holm's "
    "correction is over the losses of a model, task and metric.",
)
GROUP = ["model", "task"]


def holm(p_values: Sequence[float] | pd.Series[float]) -> NDArray[np.float64]:
    """The p-values of one family, corrected by Holm; missing ones stay so and do not count."""
    from statsmodels.stats.multitest import multipletests

    p = np.asarray(p_values, dtype=np.float64)
    found = np.isfinite(p)
    adjusted = np.full(p.shape, np.nan)
    if found.any():
        gc.freeze()  # statsmodels collects garbage each time: 0.3 s beside pandas and torch
        try:
            adjusted[found] = multipletests(p[found], method="holm")[1]
        finally:
            gc.unfreeze()
    return adjusted


def standard_error(differences: pd.Series[float], low: float, high: float) -> float:
    """Of the mean over the seeds; of one seed by the width of its 95 % interval."""
    if len(differences) > 1:
        return float(differences.std() / np.sqrt(len(differences)))
    return float((high - low) / (2 * _NORMAL))


def p_of_seeds(
    differences: pd.Series[float], mcnemar: float | None, error: float = np.nan
) -> float:
    """The p of a loss's paired differences, one a seed; missing where they do not vary.

    Of several seeds by the t-test, of one McNemar's where it has one, else by its standard error.
    """
    from scipy.stats import norm
    from statsmodels.stats.weightstats import DescrStatsW

    if len(differences) > 1:
        varies = differences.nunique() > 1
        return float(DescrStatsW(differences.to_numpy()).ttest_mean()[1]) if varies else np.nan
    if not pd.isna(mcnemar):
        return float(mcnemar)
    return float(2 * norm.sf(abs(differences.iloc[0]) / error)) if error > 0 else np.nan


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

    `difference` is the mean over the seeds and `p` that of `p_of_seeds`; `p_holm` is corrected
    over the losses of a model and task. `best` is the largest difference of these, if it is above
    zero and its p_holm below `LEVEL`.
    """
    compared = data["against_loss"] == other
    values = data.assign(
        difference=data["difference"].astype("float64").where(compared),
        p=data["difference_p"].astype("float64").where(compared),
    )
    found = pd.DataFrame(
        [
            dict(zip(KEY, key, strict=True))
            | {"difference": here["difference"].mean(), "p": _p_of_rows(here)}
            for key, here in values.groupby(KEY, observed=True)
        ]
    )
    for name in KEY:
        found[name] = found[name].astype(data[name].dtype)
    families = found.groupby(GROUP, observed=True)
    found["p_holm"] = families["p"].transform(holm)
    largest = found["difference"] == families["difference"].transform("max")
    found["best"] = largest & (found["p_holm"] < LEVEL) & (found["difference"] > 0)
    return found


def _p_of_rows(rows: pd.DataFrame) -> float:
    """The p of the compared seeds of a loss; missing where none is."""
    here = rows.dropna(subset="difference")
    return p_of_seeds(here["difference"], here["p"].iloc[0]) if len(here) else np.nan
