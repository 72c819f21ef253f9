"""What each loss gains over cross-entropy on the first metric of a task, with 95% intervals.

The first metric is the one that selects checkpoints. Over several seeds the interval is that of
the mean of the seeds' paired differences by Student's t (statsmodels): what other seeds would give
on this test set. Of one seed it is the paired bootstrap over the test examples: what another test
set would give for these two checkpoints.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from ._cells import REFERENCE, in_order, measured, metrics_of

if TYPE_CHECKING:
    from smmd_bench.contracts import Metric, Run

KEY = ["model", "task", "loss"]
METRIC = ["metric", "label", "better"]
OVER_SEEDS, OVER_EXAMPLES = "t over seeds", "bootstrap over examples"
INTERVALS = (
    "95 % intervals, not corrected for their number: over several seeds (filled markers) Student's "
    "t interval of the mean of the seeds' paired differences, which covers other seeds on this "
    "test set, and is very wide for two (none where all seeds have the same difference); of one "
    "seed (open markers) the paired bootstrap over the test examples, which covers other test sets."
)


def first_metric(task: str) -> Metric | None:
    """The first metric of a task; None: its plugin is not here any more."""
    return next(iter(metrics_of(task)), None)


def reference_of(run: Run) -> str:
    """What the losses are compared with: cross-entropy; the first of completions made elsewhere."""
    others = run.comparisons["against_loss"].drop_duplicates()
    elsewhere = "predictions" in run.manifest and len(others)
    return str(others.iloc[0]) if elsewhere else REFERENCE


def seed_gains(run: Run) -> pd.DataFrame:
    """One row a compared cell: metric, label, better, difference, low, high, n.

    Of the first metric of each task whose plugin is here; `low` and `high` are the bounds of the
    paired bootstrap.
    """
    found = run.comparisons[run.comparisons["against_loss"] == reference_of(run)]
    found = found[found["difference"].notna()]
    columns = [*KEY, "seed", *METRIC, "difference", "low", "high", "n"]
    parts = [pd.DataFrame(columns=columns)]
    for task in found["task"].unique():
        if (metric := first_metric(str(task))) is not None:
            rows = found[(found["task"] == task) & (found["metric"] == metric.name)]
            parts.append(rows.assign(label=metric.label, better=metric.better)[columns])
    return in_order(pd.concat(parts[1:] or parts, ignore_index=True), run.cells)


def gains(seeds: pd.DataFrame) -> pd.DataFrame:
    """One row a model, task and loss of `seed_gains`: the mean over the seeds and its interval.

    metric, label, better, seeds (their number), difference, low, high, interval (how it is made),
    n (test examples of one seed).
    """
    rows = []
    for _, group in seeds.groupby(KEY, observed=True):
        first = group.iloc[0]
        low, high, interval = first["low"], first["high"], OVER_EXAMPLES
        if len(group) > 1:
            (low, high), interval = _over_seeds(group["difference"]), OVER_SEEDS
        row = {**first[[*KEY, *METRIC]], "seeds": len(group)}
        row |= {"difference": float(group["difference"].mean()), "low": low, "high": high}
        rows.append({**row, "interval": interval, "n": int(group["n"].max())})
    return in_order(pd.DataFrame(rows), seeds)


def why_no_gain(run: Run) -> str | None:
    """Why no loss can be compared; None: one can."""
    if measured(run.cells).empty:
        return "no cell has results"
    if seed_gains(run).empty:
        return "no loss has results beside those of cross-entropy for the same seed"
    return None


def unknown_note(run: Run) -> str:
    """A sentence on the tasks left out since their plugin is not here; empty where none is."""
    tasks = [str(task) for task in run.cells["task"].unique()]
    lost = [task for task in tasks if first_metric(task) is None]
    return f" Left out (no such task is installed): {', '.join(lost)}." if lost else ""


def _over_seeds(differences: pd.Series[float]) -> tuple[float, float]:
    from statsmodels.stats.weightstats import DescrStatsW

    if differences.nunique() == 1:  # by chance: of no width is not of no doubt
        return math.nan, math.nan
    low, high = DescrStatsW(differences.to_numpy()).tconfint_mean()
    return float(low), float(high)
