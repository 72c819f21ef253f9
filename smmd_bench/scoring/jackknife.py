"""What each group of test examples says of a difference between two cells: jackknife pseudo-values.

Cells that answer the same examples have the same groups, whatever their metric, loss and seed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from ..contracts import Metric

GROUPS = 200
"""At most; so many examples or fewer make a group each."""
_DIGITS = 7


def pseudo_values(
    metric: Metric, frame: pd.DataFrame, other: pd.DataFrame, groups: int = GROUPS
) -> list[float] | None:
    """The pseudo-values of the metric of `frame` minus that of `other`, one a group of examples.

    Both frames have the same examples in the same order; a metric with a subset counts those in the
    subset of both. The mean of the pseudo-values estimates
    the difference; of a metric that is a mean each is the difference within its group. They are
    those of the delete-m jackknife for unequal m (F. M. T. A. Busing, E. Meijer, R. van der
    Leeden, Statistics and Computing 9, 1999). None: leaving a group out leaves no value.
    """
    n = len(frame)
    if n < 2:
        return None
    group, counted = _groups(n, groups), np.ones(n, dtype=bool)
    if metric.subset is not None:
        counted = (frame[metric.subset] & other[metric.subset]).to_numpy(bool)
    sides = [
        [part[column].to_numpy(np.float64) for column in metric.columns] for part in (frame, other)
    ]
    sizes = np.bincount(group)
    whole = _difference(metric, sides, counted)
    without = np.array(
        [_difference(metric, sides, counted & (group != g)) for g in range(len(sizes))]
    )
    with np.errstate(invalid="ignore"):
        values = whole * n / sizes - (n / sizes - 1) * without
    if not np.isfinite(values).all():
        return None
    return [float(f"{value:.{_DIGITS}g}") for value in values]


def _groups(n: int, most: int) -> NDArray[np.int64]:
    """The group of each example: of equal sizes but for one, drawn once for this n."""
    size = math.ceil(n / most)
    drawn: NDArray[np.int64] = np.random.default_rng(0).permutation(n) // size
    return drawn


def _difference(
    metric: Metric, sides: Sequence[Sequence[NDArray[np.float64]]], kept: NDArray[np.bool_]
) -> float:
    if not kept.any():
        return math.nan
    with np.errstate(all="ignore"):
        here, there = (metric.statistic(*[c[kept] for c in side], axis=-1) for side in sides)
        return float(here - there)
