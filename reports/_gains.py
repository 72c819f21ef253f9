"""What each loss gains over cross-entropy on the first metric of a task, with 95% intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from smmd_bench.contracts import Metric, Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.scoring.crossed import fit_cells, t_interval, t_test

from ._cells import KEY, REFERENCE, in_order, is_reference, measured, metrics_of

METRIC = ["metric", "label", "better"]
_NORMAL = 1.959964
"""Half of a 95 % interval in standard errors."""
WIDEST = 3.0
"""How far an axis goes at most, in units of the largest difference of one seed."""
OVER_SEEDS, OVER_EXAMPLES = "seeds and examples", "examples"
RECIPES = "none: several recipes"
INTERVALS = (
    "95 % intervals, not corrected for their number: of several seeds (filled markers) by a mixed "
    "model of seeds and test examples, which covers both; of one seed (open markers) over the test "
    "examples alone."
)


def first_metric(task: str) -> Metric | None:
    """The first metric of a task; None: its plugin is not here any more."""
    return next(iter(metrics_of(task)), None)


def reference_of(run: Run) -> str:
    """What the losses are compared with: cross-entropy; the first of completions made elsewhere."""
    others = run.comparisons["against_loss"].drop_duplicates()
    elsewhere = "predictions" in run.manifest and len(others)
    return str(others.iloc[0]) if elsewhere else REFERENCE


def noise_label(run: Run) -> str:
    """What the row of cross-entropy against itself is called."""
    return f"{loss_label(reference_of(run))}, other seeds"


def seed_gains(
    run: Run, metrics: Callable[[str], Sequence[Metric]] = lambda task: metrics_of(task)[:1]
) -> pd.DataFrame:
    """One row a compared cell and metric: metric, label, better, what `paired` says, and `against`.

    Of these metrics of each task (its first) whose plugin is here.
    """
    found = paired(run, reference_of(run))
    parts = [found[:0].assign(label="", better="")]
    for task in found["task"].unique():
        for metric in metrics(str(task)):
            rows = found[(found["task"] == task) & (found["metric"] == metric.name)]
            parts.append(rows.assign(label=metric.label, better=metric.better))
    return in_order(pd.concat(parts[1:] or parts, ignore_index=True), run.cells)


def paired(run: Run, other: str) -> pd.DataFrame:
    """The comparisons with a loss, one row a cell and metric that has a difference, and those of
    cross-entropy with itself: difference, low, high, n, b, c, p, jackknife and against."""
    kept = [
        *(*KEY, "seed", "metric", "difference", "low", "high"),
        *("n", "p", "b", "c", "jackknife", "against"),
    ]
    noise = run.noise if other == REFERENCE else run.noise[:0]
    found = [run.comparisons[is_reference(run.comparisons["against_loss"], other)], noise]
    every = pd.concat([part for part in found if len(part)] or found[:1], ignore_index=True)
    return in_order(every.loc[every["difference"].notna(), kept], run.cells)


def gains(seeds: pd.DataFrame) -> pd.DataFrame:
    """One row a model, task, loss and metric of `seed_gains`: the mean over its seeds.

    metric, label, better, seeds (their number), difference, low, high, interval (what it covers),
    n (test examples of one seed), error (the standard error), df (its degrees of freedom), p,
    discordant (McNemar's b + c of one seed) and against (addresses). Cells of one seed that differ
    in their recipes have neither interval nor p.
    """
    rows = [
        {**group.iloc[0][[*KEY, *METRIC]], **_gain(group)}
        for _, group in seeds.groupby([*KEY, "metric"], observed=True, sort=False)
    ]
    return in_order(pd.DataFrame(rows), seeds)


def _gain(cells: pd.DataFrame) -> dict[str, Any]:
    """The mean difference of the cells of a model, task, loss and metric, with its test."""
    number, mean = cells["seed"].nunique(), float(cells["difference"].mean())
    found = {
        "seeds": number, "difference": mean,
        "n": int(cells["n"].max()), "against": tuple(cells["against"]),
    }  # fmt: skip
    none = dict.fromkeys(("low", "high", "error", "df", "p", "discordant"), math.nan)
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
    return found | none | bounds | {"interval": OVER_SEEDS}


def _of_one_seed(cell: pd.Series[Any]) -> dict[str, Any]:
    """The interval and the p of its comparison; the error by the interval's width."""
    found = {name: float(cell[name]) for name in ("low", "high", "p")}
    error = (found["high"] - found["low"]) / (2 * _NORMAL)
    discordant = float(cell["b"]) + float(cell["c"])
    more = {"error": error, "df": math.inf, "discordant": discordant}
    return {**found, **more, "interval": OVER_EXAMPLES}


def _of_no_variance(cells: pd.DataFrame) -> dict[str, Any]:
    """No seed and no example differs: as far as one seed's interval has a width."""
    first = cells.iloc[0]
    same = bool((cells["difference"] == 0).all()) and first["low"] < first["high"]
    bounds = {"low": first["low"], "high": first["high"], "p": 1.0} if same else {}
    return {**bounds, "interval": OVER_EXAMPLES}


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
    if (seed_gains(run)["loss"] == reference_of(run)).all():
        return "no loss has results beside those of cross-entropy for the same seed"
    return None


def unknown_note(run: Run) -> str:
    """A sentence on the tasks left out since their plugin is not here; empty where none is."""
    tasks = map(str, run.cells["task"].unique())
    lost = ", ".join(task for task in tasks if first_metric(task) is None)
    return f"Left out (no such task is installed): {lost}." if lost else ""
