"""Intervals, paired differences and tests of one checkpoint, or of two on the same examples.

A share of examples has Wilson's interval, the difference of two Tango's and McNemar's exact test
(`proportions`); any other metric has the percentile bootstrap's over the examples, by scipy.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..contracts import Metric, Percentage, Task
from .decoding_rules import by_decoder, metrics_under
from .proportions import CONFIDENCE, mcnemar_p, tango

if TYPE_CHECKING:
    import pandas as pd

VERSION = 3
"""Raise it when an interval or a test would come out differently; part of the measure address."""

RESAMPLES = 2000
_VALUES_A_BATCH = 1 << 20
"""Resampled values of one column held at a time: 8 MiB of float64."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A metric's value with its interval, and the n that it was computed from.

    None: no example, a constant truth, an overflow; of the bounds also a single example.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired difference with its interval, and the p of none: of a share McNemar's, with its `b`
    and `c`; of another metric by the resamples (twice the smaller share on one side of 0)."""

    difference: float | None
    low: float | None
    high: float | None
    n: int
    p: float | None = None
    b: int | None = None
    c: int | None = None


def interval(
    metric: Metric, frame: pd.DataFrame, *, resamples: int = RESAMPLES
) -> Estimate:
    """The metric over a scored frame, with its interval."""
    if metric.subset is not None:
        frame = frame[frame[metric.subset]]
    columns = arrays_of(metric, frame)
    if not _is_share(metric, columns):
        estimate, _ = _resample(metric.statistic, columns, resamples)
        return estimate

    from statsmodels.stats.proportion import proportion_confint

    n = len(frame)
    value = float(metric.statistic(*columns, axis=-1))

    # Wilson's interval wants a count; rounding takes off what the mean has lost.
    count = round(value * n / 100)
    low, high = proportion_confint(count, n, alpha=1 - CONFIDENCE, method="wilson")
    return Estimate(value, 100 * float(low), 100 * float(high), n)


def metric_values(
    task: Task, scores: pd.DataFrame, *, resamples: int = RESAMPLES
) -> dict[str, dict[str, float | int | None]]:
    """Value, interval and n of every metric of the task whose columns the frame has; those of the
    error once more under each decoding rule that answered."""
    estimates = {}
    for decoder, frame in by_decoder(scores).items():
        for name, metric in metrics_under(task, decoder).items():
            if {*metric.columns} <= {*frame.columns}:
                estimate = interval(metric, frame, resamples=resamples)
                estimates[name] = asdict(estimate)
    return estimates


def paired_difference(
    metric: Metric,
    frame: pd.DataFrame,
    other: pd.DataFrame,
    *,
    resamples: int = RESAMPLES,
) -> Difference:
    """The metric of `frame` minus that of `other`, with its interval and its test.

    Both are taken over the examples (by uid) that they share; a metric with a subset, over those
    in the subset of both. Every resample draws the same examples from both frames.
    """
    frame, other = common(frame, other)
    if metric.subset is not None:
        in_subset = frame[metric.subset].to_numpy(bool)
        in_both = in_subset & other[metric.subset].to_numpy(bool)
        frame = frame[in_both]
        other = other[in_both]
    columns = [*arrays_of(metric, frame), *arrays_of(metric, other)]
    width = len(metric.columns)

    def difference(
        *columns: NDArray[np.float64], axis: int = -1
    ) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            value = metric.statistic(*columns[:width], axis=axis)
            return np.asarray(value - metric.statistic(*columns[width:], axis=axis))

    if not _is_share(metric, columns):
        estimate, drawn = _resample(difference, columns, resamples)
        p = p_of_resamples(drawn)
        return Difference(estimate.value, estimate.low, estimate.high, estimate.n, p)

    value = float(difference(*columns))
    column, other_column = columns
    b = int(np.sum(column > other_column))
    c = int(np.sum(column < other_column))
    if value * (b - c) < 0:  # the metric counts zeros
        b, c = c, b
    n = len(column)
    low, high = tango(b, c, n)
    return Difference(value, 100 * low, 100 * high, n, mcnemar_p(b, c), b, c)


def p_of_resamples(drawn: NDArray[np.float64]) -> float | None:
    """Two-sided, of the resampled differences: never below 2 / (their number + 1). None without."""
    # A resample of equal answers has no R², and so is on no side.
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn):
        return None
    # Both sides count resamples at 0, so that p of no difference is 1.
    side = min(int(np.sum(drawn <= 0)), int(np.sum(drawn >= 0)))
    return min(1.0, 2 * (side + 1) / (len(drawn) + 1))


def over_seeds(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation (n - 1) over seeds; no deviation for one seed."""
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return statistics.fmean(values), deviation


def common(
    frame: pd.DataFrame, other: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of both frames for the uids that they share, in the order of the first."""
    frame = frame.set_index("uid")
    other = other.set_index("uid")
    # The usual case, which needs no copy of the frames.
    if frame.index.equals(other.index):
        return frame, other
    shared = frame.index[frame.index.isin(other.index)]
    return frame.loc[shared], other.loc[shared]


def _is_share(metric: Metric, columns: Sequence[NDArray[np.float64]]) -> bool:
    """Whether the metric is a share of its examples, each of which counts 0 or 1."""
    # ROUGE is a percentage, too, and its values lie between 0 and 1.
    binary = all(np.isin(column, (0.0, 1.0)).all() for column in columns)
    return isinstance(metric, Percentage) and len(columns[0]) > 0 and binary


def _resample(
    statistic: Callable[..., NDArray[np.float64]],
    columns: Sequence[NDArray[np.float64]],
    resamples: int,
) -> tuple[Estimate, NDArray[np.float64]]:
    """The statistic with its percentile bootstrap interval, and the resampled values."""
    from scipy.stats import DegenerateDataWarning, bootstrap

    n = len(columns[0])
    nothing_drawn = np.zeros(0)
    if n == 0:
        return Estimate(None, None, None, 0), nothing_drawn
    value = _finite(statistic(*columns, axis=-1))

    # Every resample of one example is that example.
    if n == 1:
        return Estimate(value, None, None, 1), nothing_drawn

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # Raised where a resample has no value, which `_finite` turns into None.
        warnings.simplefilter("ignore", DegenerateDataWarning)
        result = bootstrap(
            tuple(columns),
            statistic,
            paired=True,
            vectorized=True,
            n_resamples=resamples,
            batch=max(1, min(resamples, _VALUES_A_BATCH // n)),
            confidence_level=CONFIDENCE,
            method="percentile",
            # The same files have the same intervals, whenever they are measured.
            rng=np.random.default_rng(0),
        )

    bounds = result.confidence_interval
    estimate = Estimate(value, _finite(bounds.low), _finite(bounds.high), n)
    return estimate, result.bootstrap_distribution


def arrays_of(metric: Metric, frame: pd.DataFrame) -> list[NDArray[np.float64]]:
    """The columns that a metric looks at, each [n]."""
    return [frame[column].to_numpy(np.float64) for column in metric.columns]


def _finite(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
