"""What each loss gains over cross-entropy on the first metric of a task, with 95% intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from smmd_bench.contracts import Metric, Run

from ._cells import KEY, REFERENCE, in_order, is_reference, measured, metrics_of
from ._significance import p_of_seeds, standard_error

METRIC = ["metric", "label", "better"]
WIDEST = 3.0
"""How far an axis goes at most, in units of the largest difference of one seed."""
OVER_SEEDS, OVER_EXAMPLES = "t over seeds", "bootstrap over examples"
RECIPES = "none: several recipes"
INTERVALS = (
    "95 % intervals, not corrected for their number: over several seeds (filled markers) Student's "
    "t of the mean paired difference, which covers other seeds on this test set; of one seed (open "
    "markers) the paired bootstrap over the test examples, which covers other test sets."
)


def first_metric(task: str) -> Metric | None:
    """The first metric of a task; None: its plugin is not here any more."""
    return next(iter(metrics_of(task)), None)


def reference_of(run: Run) -> str:
    """What the losses are compared with: cross-entropy; the first of completions made elsewhere."""
    others = run.comparisons["against_loss"].drop_duplicates()
    elsewhere = "predictions" in run.manifest and len(others)
    return str(others.iloc[0]) if elsewhere else REFERENCE


def seed_gains(
    run: Run, metrics: Callable[[str], Sequence[Metric]] = lambda task: metrics_of(task)[:1]
) -> pd.DataFrame:
    """One row a compared cell and metric: metric, label, better, difference, low, high, n, p, b, c,
    and the address that it is compared `against`.

    Of these metrics of each task (its first) whose plugin is here; `low` and `high` are the bounds
    of the paired bootstrap, `p` is McNemar's.
    """
    found = run.comparisons[is_reference(run.comparisons["against_loss"], reference_of(run))]
    found = found[found["difference"].notna()]
    columns = [*KEY, "seed", *METRIC, "difference", "low", "high", "n", "p", "b", "c", "against"]
    parts = [pd.DataFrame(columns=columns)]
    for task in found["task"].unique():
        for metric in metrics(str(task)):
            rows = found[(found["task"] == task) & (found["metric"] == metric.name)]
            parts.append(rows.assign(label=metric.label, better=metric.better)[columns])
    return in_order(pd.concat(parts[1:] or parts, ignore_index=True), run.cells)


def gains(seeds: pd.DataFrame) -> pd.DataFrame:
    """One row a model, task, loss and metric of `seed_gains`: the mean over its seeds.

    metric, label, better, seeds (their number), difference, low, high, interval (how it is made),
    n (test examples of one seed), error (the standard error that the interval is made of), p (see
    `_significance.p_of_seeds`), discordant (McNemar's b + c of one seed) and against (addresses).
    Cells of one seed that differ in their recipes have neither interval nor p.
    """
    rows = []
    for _, group in seeds.groupby([*KEY, "metric"], observed=True, sort=False):
        first = group.iloc[0]
        low, high, interval = first["low"], first["high"], OVER_EXAMPLES
        seeds_here = group["seed"].nunique()
        if len(group) > 1:
            (low, high), interval = _over_seeds(group["difference"]), OVER_SEEDS
        row = {**first[[*KEY, *METRIC]], "seeds": seeds_here}
        row |= {"difference": float(group["difference"].mean()), "low": low, "high": high}
        error = standard_error(group["difference"], first["low"], first["high"])
        row |= {"interval": interval, "n": int(group["n"].max()), "error": error}
        row |= {"p": p_of_seeds(group["difference"], first["p"], error)}
        if seeds_here < len(group):
            row |= dict.fromkeys(("low", "high", "error", "p"), math.nan) | {"interval": RECIPES}
        one = len(group) == 1
        row["discordant"] = float(first["b"]) + float(first["c"]) if one else math.nan
        rows.append(row | {"against": tuple(group["against"])})
    return in_order(pd.DataFrame(rows), seeds)


def _over_seeds(differences: pd.Series[float]) -> tuple[float, float]:
    from statsmodels.stats.weightstats import DescrStatsW

    if differences.nunique() == 1:  # by chance: of no width is not of no doubt
        return math.nan, math.nan
    low, high = DescrStatsW(differences.to_numpy()).tconfint_mean()
    return float(low), float(high)


def window(seeds: pd.DataFrame, found: pd.DataFrame) -> tuple[float, float]:
    """The ends of an axis: all of the seeds and of the intervals, but no more than `WIDEST`.

    The t interval of two seeds can be many times as wide as all differences together.
    """
    bound = WIDEST * float(seeds["difference"].abs().max()) or 1.0
    values = np.concatenate([[0.0], seeds["difference"], found["low"], found["high"]])
    inside = np.clip(values[np.isfinite(values)], -bound, bound)
    margin = 0.06 * float(np.ptp(inside)) or 1.0
    return float(inside.min()) - margin, float(inside.max()) + margin


def why_no_gain(run: Run) -> str | None:
    """Why no loss can be compared; None: one can."""
    if measured(run.cells).empty:
        return "no cell has results"
    if seed_gains(run).empty:
        return "no loss has results beside those of cross-entropy for the same seed"
    return None


def unknown_note(run: Run) -> str:
    """A sentence on the tasks left out since their plugin is not here; empty where none is."""
    tasks = map(str, run.cells["task"].unique())
    lost = ", ".join(task for task in tasks if first_metric(task) is None)
    return f"Left out (no such task is installed): {lost}." if lost else ""
