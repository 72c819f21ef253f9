"""The difference between two losses, over the seeds that both have: the one test of all tables."""

from __future__ import annotations

import gc
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .crossed import fit_cells, t_interval, t_test
from .power import smallest_by_mcnemar, smallest_by_t
from .proportions import tango
from .statistics import mcnemar_of

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

OVER_SEEDS, OVER_SEEDS_ALONE, OVER_EXAMPLES = "seeds and examples", "seeds", "examples"
RECIPES = "none: several recipes"
FEW = 10
"""Discordant pairs of all seeds: the spread of fewer says too little of the error."""
_NORMAL = 1.959964
"""Half of a 95 % interval in standard errors."""


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


def gain_of(cells: pd.DataFrame) -> dict[str, Any]:
    """The mean difference of the comparisons of a model, task, loss and metric, with its test.

    `cells` are rows of a run's comparisons, one a seed. interval: what it covers; n: test examples
    of one seed; error: the standard error, and df its degrees of freedom; discordant: McNemar's b +
    c, of one seed and where there are fewer than `FEW`, of so many pairs. Cells of one seed that
    differ in their recipes have neither interval nor p.
    """
    number, mean = cells["seed"].nunique(), float(cells["difference"].mean())
    found = {
        "seeds": number, "difference": mean,
        "n": int(cells["n"].max()), "against": tuple(cells["against"]),
    }  # fmt: skip
    none = dict.fromkeys(("low", "high", "error", "df", "p", "discordant", "pairs"), math.nan)
    if number < len(cells):
        return found | none | {"interval": RECIPES}
    if number == 1:
        return found | none | _of_one_seed(cells.iloc[0])
    model = fit_cells(cells)
    if model.error == 0:
        return found | none | _of_no_variance(cells)
    low, high = t_interval(mean, model.error, model.df)
    p = t_test(mean, model.error, model.df)
    bounds = {"low": low, "high": high, "error": model.error, "df": model.df, "p": p}
    covers = OVER_SEEDS if model.examples > 2 else OVER_SEEDS_ALONE
    return found | none | _with_few_pairs(bounds, cells) | {"interval": covers}


def _of_one_seed(cell: pd.Series[Any]) -> dict[str, Any]:
    """The interval and the p of its comparison; the error by the interval's width."""
    known = {
        name: float(cell[name]) for name in ("low", "high", "p", "b", "c") if cell[name] is not None
    }
    low, high, p, b, c = (known.get(name, math.nan) for name in ("low", "high", "p", "b", "c"))
    error = {"error": (high - low) / (2 * _NORMAL), "df": math.inf}
    found = {"low": low, "high": high, "p": p, "discordant": b + c, "pairs": float(cell["n"])}
    return {**found, **error, "interval": OVER_EXAMPLES}


def _of_no_variance(cells: pd.DataFrame) -> dict[str, Any]:
    """All seeds and examples differ by the same: what one seed says, where that has a width."""
    first = _of_one_seed(cells.iloc[0])
    return first if first["low"] < first["high"] else {"interval": OVER_EXAMPLES}


def _with_few_pairs(bounds: dict[str, float], cells: pd.DataFrame) -> dict[str, float]:
    """The same; of a share with fewer than `FEW` discordant pairs in all, with the wider of this
    interval and of Tango's over all pairs, and the larger p of this test and of McNemar's."""
    if cells["b"].isna().any() or cells["b"].sum() + cells["c"].sum() >= FEW:
        return bounds
    b, c, pairs = (int(cells[name].sum()) for name in ("b", "c", "n"))
    low, high = tango(b, c, pairs)
    wider = {"low": min(bounds["low"], 100 * low), "high": max(bounds["high"], 100 * high)}
    p = max(bounds["p"], mcnemar_of(b, c).p)
    return {**bounds, **wider, "p": p, "discordant": b + c, "pairs": pairs}


def smallest_difference(gain: dict[Any, Any], level: float) -> float:
    """The true difference that the test of a gain finds with a probability of 80 %, at this level.

    Of several seeds by the t-test's power; of one seed's exact match by that of McNemar's exact
    test, of other metrics by the bootstrap's error; the larger of both where pairs are few.
    """
    by_t = smallest_by_t(gain["error"], gain["df"], level)
    if math.isnan(gain["discordant"]):
        return by_t
    by_pairs = 100 * smallest_by_mcnemar(int(gain["discordant"]), int(gain["pairs"]), level)
    return by_pairs if math.isinf(gain["df"]) else max(by_t, by_pairs)
