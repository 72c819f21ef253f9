"""Intervals of proportions that keep a width at 0 of n and at n of n."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EDGE = 1e-12


def is_binary(*columns: NDArray[np.float64]) -> bool:
    """Whether every value is 0 or 1."""
    return all(bool(np.isin(column, (0.0, 1.0)).all()) for column in columns)


def wilson(count: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The bounds of Wilson's interval of count / n, n > 0."""
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(count, n, alpha=1 - confidence, method="wilson")
    return float(low), float(high)


def tango(b: int, c: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The bounds of Tango's score interval of the paired difference (b - c) / n.

    `b` of n examples only the first has, `c` only the other. The interval holds every difference
    that the score test does not reject, and McNemar's chi-squared is that test at 0. T. Tango,
    "Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design", Statistics in Medicine 17, 1998, equations 20 to 24.
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    bound, seen = float(norm.isf((1 - confidence) / 2)), (b - c) / n

    def above(delta: float, sign: int) -> float:
        return sign * _score(delta, b, c, n) - bound

    ends = {1: -1 + _EDGE, -1: 1 - _EDGE}
    low, high = (
        -float(sign)
        if above(end, sign) < 0 or end == seen
        else brentq(above, *sorted((end, seen)), (sign,))
        for sign, end in ends.items()
    )
    return float(low), float(high)


def _score(delta: float, b: int, c: int, n: int) -> float:
    """How many standard errors the difference seen lies above `delta`."""
    excess = b - c - n * delta
    if abs(excess) < n * _EDGE:
        return 0.0
    linear = -b - c + (2 * n - b + c) * delta
    constant = -c * delta * (1 - delta)
    other = (math.sqrt(max(0.0, linear**2 - 8 * n * constant)) - linear) / (4 * n)
    variance = n * (2 * other + delta * (1 - delta))
    return excess / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, excess)
