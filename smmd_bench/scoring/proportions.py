"""Tango's interval and McNemar's test of the difference of two shares on the same examples."""

from __future__ import annotations

import math

CONFIDENCE = 0.95
_EDGE = 1e-12


def mcnemar_p(b: int, c: int) -> float:
    """The p of McNemar's exact test: `b` examples only the first gets right, `c` only the other.
    Where they never differ (b + c = 0) there is no evidence of a difference, and p is 1."""
    from statsmodels.stats.contingency_tables import mcnemar

    return float(mcnemar([[0, b], [c, 0]], exact=True).pvalue)  # the discordant pairs alone count


def tango(b: int, c: int, n: int) -> tuple[float, float]:
    """The bounds of Tango's 95 % score interval of the paired difference (b - c) / n.

    `b` of n examples only the first has, `c` only the other. The interval holds every difference
    that the score test does not reject, and McNemar's chi-squared is that test at 0. T. Tango,
    "Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design", Statistics in Medicine 17, 1998, equations 20 to 24.
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    bound, seen = float(norm.isf((1 - CONFIDENCE) / 2)), (b - c) / n

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
