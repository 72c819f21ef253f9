"""A metric of a cell: its value and interval, and what each example adds to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...contracts import MeanAbsoluteError, Metric, Percentage, RSquared, Task

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True)
class MeasuredMetric:
    """value, low, high: as in metrics.json, an accuracy in percent; low and high may be missing.

    per_example: the metric of each example alone, NaN where it does not count; None: the metric is
    not their mean.
    """

    metric: Metric
    value: float
    low: float | None
    high: float | None
    n: int
    per_example: NDArray[np.float64] | None

    @property
    def name(self) -> str:
        """The name of the metric."""
        return self.metric.name

    @property
    def unit(self) -> float:
        """What makes a share from 0 to 1 of a percentage; 1 for every other metric."""
        return 0.01 if isinstance(self.metric, Percentage) else 1.0

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value of a share, or of another metric."""
        if isinstance(self.metric, Percentage):
            return 0.0, 1.0
        least = 0.0 if isinstance(self.metric, MeanAbsoluteError) else -math.inf
        return least, 1.0 if isinstance(self.metric, RSquared) else math.inf

    @property
    def shares(self) -> NDArray[np.float64] | None:
        """`per_example` in the unit of a share."""
        return None if self.per_example is None else self.per_example * self.unit

    @property
    def standard_error(self) -> float | None:
        """That of the mean, as lm-eval computes it, in the unit of a share."""
        if (values := self.shares) is None:
            return None
        values = values[~np.isnan(values)]
        return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None


def measured_metrics(
    task: Task, content: Mapping[str, Any], frame: pd.DataFrame
) -> list[MeasuredMetric]:
    """The metrics of a task that have a value in `content`, that of metrics.json."""
    found = []
    for metric in task.metrics():
        known = content.get("metrics", {}).get(metric.name)
        if known is None or known["value"] is None:
            continue
        value, per_example = float(known["value"]), _per_example(metric, frame)
        if per_example is not None and not np.isclose(np.nanmean(per_example), value):
            per_example = None
        numbers = (value, known["low"], known["high"], int(known["n"]))
        found.append(MeasuredMetric(metric, *numbers, per_example))
    return found


def _per_example(metric: Metric, frame: pd.DataFrame) -> NDArray[np.float64] | None:
    """The statistic of each example alone; None where it has none for one."""
    if not set(metric.columns) <= {*frame.columns}:
        return None
    counts = np.ones(len(frame), bool)
    if metric.subset is not None:
        counts = frame[metric.subset].to_numpy(bool)
    columns = [frame[name].to_numpy(np.float64)[counts].reshape(-1, 1) for name in metric.columns]
    with np.errstate(all="ignore"):
        values = np.asarray(metric.statistic(*columns, axis=-1), np.float64)
    if values.shape != (int(counts.sum()),) or not len(values) or not np.isfinite(values).all():
        return None
    whole = np.full(len(frame), np.nan)
    whole[counts] = values
    return whole
