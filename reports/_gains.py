"""What each loss gains over cross-entropy on the first metric of a task, with 95% intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from smmd_bench.contracts import Metric, Run
from smmd_bench.publishing.style import loss_label
from smmd_bench.scoring.gain import gain_of

from ._cells import KEY, REFERENCE, in_order, is_reference, measured, metrics_of

METRIC = ["metric", "label", "better"]
WIDEST = 3.0
"""How far an axis goes at most, in units of the largest difference of one seed."""
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

    metric, label, better, and what `gain_of` says.
    """
    rows = [
        {**group.iloc[0][[*KEY, *METRIC]], **gain_of(group)}
        for _, group in seeds.groupby([*KEY, "metric"], observed=True, sort=False)
    ]
    return in_order(pd.DataFrame(rows), seeds)


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
