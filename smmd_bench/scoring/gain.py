"""The difference between two losses, over the seeds that both have: the one test of all tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .crossed import fit_cells
from .proportions import CONFIDENCE, mcnemar_p, tango

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

OVER_SEEDS, OVER_SEEDS_ALONE, OVER_EXAMPLES = "seeds and examples", "seeds", "examples"
RECIPES = "none: several recipes"
FEW = 10
"""Discordant pairs of all seeds: the spread of fewer says too little of the error."""
# The usual convention, beside the level of 5 %.
POWER = 0.8
LEVEL = 0.05
"""A p below it, corrected by Holm, counts as significant."""
FEWEST = 3
"""Degrees of freedom, below which an error is not known well enough to say what it hides."""
_NORMAL = 1.959964
"""Half of a 95 % interval in standard errors."""


def holm(p_values: Sequence[float] | pd.Series[float]) -> NDArray[np.float64]:
    """The p-values of one family, corrected by Holm; missing ones stay so and do not count."""
    # Not by statsmodels, whose import takes 0.3 s of every table; a test holds it to that.
    p = np.asarray(p_values, dtype=np.float64)
    is_tested = np.isfinite(p)
    order = np.flatnonzero(is_tested)[np.argsort(p[is_tested])]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted = np.full(p.shape, np.nan)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(steps))
    return adjusted


def gain_of(cells: pd.DataFrame) -> dict[str, Any]:
    """The mean difference of the comparisons of a model, task, loss and metric, with its test.

    `cells` are rows of a run's comparisons, one a seed. interval: what it covers; n: test examples
    of one seed; error: the standard error, and df its degrees of freedom; discordant: McNemar's b +
    c, of one seed and where there are fewer than `FEW`, of so many pairs. Cells of one seed that
    differ in their recipes have neither interval nor p.
    """
    from scipy.stats import t

    number = cells["seed"].nunique()
    mean = float(cells["difference"].mean())
    unknown = ("low", "high", "error", "df", "p", "discordant", "pairs")
    gain: dict[str, Any] = {
        "seeds": number,
        "difference": mean,
        "n": int(cells["n"].max()),
        **dict.fromkeys(unknown, math.nan),
    }

    # Several cells of a seed are no repetitions of one: their spread is of the recipes.
    if number < len(cells):
        return gain | {"interval": RECIPES}
    if number == 1:
        return gain | _test_one_seed(cells.iloc[0])

    model = fit_cells(cells)
    if model.error == 0:
        # All seeds differ by the same: what one of them says, where that has a width.
        first = _test_one_seed(cells.iloc[0])
        has_width = first["low"] < first["high"]
        if has_width:
            return gain | first
        return gain | {"interval": OVER_EXAMPLES}

    half = float(t.isf((1 - CONFIDENCE) / 2, model.df)) * model.error
    bounds = {
        "low": mean - half,
        "high": mean + half,
        "error": model.error,
        "df": model.df,
        "p": float(2 * t.sf(abs(mean) / model.error, model.df)),
    }

    # `fit_cells` gives two equal examples where it has the seeds alone.
    covers = OVER_SEEDS if model.examples > 2 else OVER_SEEDS_ALONE
    return gain | _widen_for_few_pairs(bounds, cells) | {"interval": covers}


def _test_one_seed(cell: pd.Series[Any]) -> dict[str, Any]:
    """Interval and p of its comparison, at least `_p_of_signs`; the error by their width."""
    numbers = cell[["low", "high", "p", "b", "c"]].astype("float64")  # None becomes NaN
    low, high, p, b, c = map(float, numbers)

    # A metric without b and c, whose bootstrap says little where few examples differ.
    if math.isnan(b) and isinstance(cell["jackknife"], list):
        p = max(p, _p_of_signs(np.asarray(cell["jackknife"])))
    return {
        "low": low,
        "high": high,
        "error": (high - low) / (2 * _NORMAL),
        "df": math.inf,
        "p": p,
        "discordant": b + c,
        "pairs": float(cell["n"]),
        "interval": OVER_EXAMPLES,
    }


def _p_of_signs(values: NDArray[np.float64]) -> float:
    """The exact sign-flip test's p where fewer than `FEW` pseudo-values differ from 0; else 0."""
    from scipy.stats import permutation_test

    # equal examples leave rounding
    differ = np.abs(values) > 1e-9 * np.abs(values).max()
    sample = np.append(values[differ], 0.0)  # the test takes two values or more
    if not 1 < len(sample) <= FEW:
        return 0.0
    return float(permutation_test((sample,), np.sum, permutation_type="samples").pvalue)


def _widen_for_few_pairs(
    bounds: dict[str, float], cells: pd.DataFrame
) -> dict[str, float]:
    """The same; of a share with fewer than `FEW` discordant pairs in all, with the wider of this
    interval and of Tango's over all pairs, and the larger p of this test and of McNemar's."""
    # Metrics other than shares have neither b nor c.
    if cells["b"].isna().any():
        return bounds
    b, c, pairs = map(int, cells[["b", "c", "n"]].sum())
    if b + c >= FEW:
        return bounds
    low, high = tango(b, c, pairs)
    return {
        **bounds,
        "low": min(bounds["low"], 100 * low),
        "high": max(bounds["high"], 100 * high),
        "p": max(bounds["p"], mcnemar_p(b, c)),
        "discordant": b + c,
        "pairs": pairs,
    }


def smallest_difference(gain: dict[Any, Any], level: float) -> float:
    """The true difference that the test of a gain finds with a probability of 80 %, at this level.

    Of several seeds by the t-test's power; of one seed's exact match by that of McNemar's exact
    test, of other metrics by the bootstrap's error; the larger of both where pairs are few.
    """
    by_t = smallest_by_t(gain["error"], gain["df"], level)
    if math.isnan(gain["discordant"]):
        return by_t
    by_pairs = 100 * smallest_by_mcnemar(
        int(gain["discordant"]), int(gain["pairs"]), level
    )
    return by_pairs if math.isinf(gain["df"]) else max(by_t, by_pairs)


def smallest_by_t(error: float, df: float, level: float) -> float:
    """The smallest true difference that a two-sided t-test with this error finds 4 times in 5; NaN
    without an error, and with fewer than `FEWEST` degrees of freedom."""
    from scipy.optimize import brentq
    from scipy.stats import nct, norm, t

    if not error > 0 or df < FEWEST:
        return math.nan
    # The t of so many, or of infinitely many, is normal to three digits.
    if df > 1000:
        return float(error * (norm.isf(level / 2) + norm.isf(1 - POWER)))
    critical = t.isf(level / 2, df)
    shift = brentq(lambda d: nct.sf(critical, df, d) - POWER, 0, 10 * critical + 10)
    return float(error * shift)


def smallest_by_mcnemar(discordant: int, n: int, level: float) -> float:
    """The same of McNemar's exact test, as a share of n examples; NaN where all n are too few.

    The share of discordant examples is the one that was seen, or the difference itself where that
    is larger: a difference of 8 in 2,000 needs 8 discordant ones. How many another sample has
    varies, so its power is the mean over their binomial distribution (J. T. Miettinen, Biometrics
    24, 1968, has its normal approximation).
    """
    from scipy.optimize import brentq

    def lacking(difference: float) -> float:
        return POWER - _power_of_mcnemar(difference, discordant / n, n, level)

    return math.nan if lacking(1.0) > 0 else float(brentq(lacking, 0, 1, xtol=1e-7))


def _power_of_mcnemar(
    difference: float, discordance: float, n: int, level: float
) -> float:
    """How often the test finds it, on the side that it is on."""
    from scipy.stats import binom

    # A difference is a part of the discordant examples, so these are not fewer.
    discordance = min(1.0, max(discordance, difference))
    if discordance == 0:
        return 0.0

    # All but a billionth of the numbers of discordant examples that a sample may have.
    fewest, largest = binom.ppf([1e-9, 1 - 1e-9], n, discordance)
    counts = np.arange(fewest, largest + 1)  # [D]

    # [D], more than so many wins pass the level
    critical = binom.isf(level / 2, counts, 0.5)

    # Of discordant examples, the share that the better side gets right.
    wins = (1 + difference / discordance) / 2
    return float(binom.pmf(counts, n, discordance) @ binom.sf(critical, counts, wins))
