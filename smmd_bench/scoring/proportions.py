"""Tango's interval and McNemar's test of the difference of two shares on the same examples."""

from __future__ import annotations

import math

CONFIDENCE = 0.95
# Bounds lie within (-1, 1): at its ends the variance is 0.
_EDGE = 1e-12


def mcnemar_p(b: int, c: int) -> float:
    """The p of McNemar's exact test: `b` examples only the first gets right, `c` only the other.
    Where they never differ (b + c = 0) there is no evidence of a difference, and p is 1."""
    from statsmodels.stats.contingency_tables import mcnemar

    # the discordant pairs alone count
    return float(mcnemar([[0, b], [c, 0]], exact=True).pvalue)


def tango(b: int, c: int, n: int) -> tuple[float, float]:
    """The bounds of Tango's 95 % score interval of the paired difference (b - c) / n.

    `b` of n examples only the first has, `c` only the other. The interval holds every difference
    that the score test does not reject, and McNemar's chi-squared is that test at 0. T. Tango,
    "Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design", Statistics in Medicine 17, 1998, equations 20 to 24.
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    bound = float(norm.isf((1 - CONFIDENCE) / 2))
    seen = (b - c) / n

    def above_bound(delta: float, sign: int) -> float:
        return sign * _score(delta, b, c, n) - bound

    def find_bound(sign: int) -> float:
        """The bound below the difference seen (1), or above it (-1)."""
        end = -sign * (1 - _EDGE)
        # The test may reject no difference on this side, or leave no room beyond the one seen.
        if above_bound(end, sign) < 0 or end == seen:
            return -float(sign)
        return float(brentq(above_bound, *sorted((end, seen)), (sign,)))

    return find_bound(1), find_bound(-1)


def _score(delta: float, b: int, c: int, n: int) -> float:
    """How many standard errors the difference seen lies above `delta`."""
    excess = b - c - n * delta

    # At the difference seen the score is 0, also where its variance is 0.
    if abs(excess) < n * _EDGE:
        return 0.0

    # The share that only the other has, most likely given `delta`: the root of a quadratic.
    linear = -b - c + (2 * n - b + c) * delta
    constant = -c * delta * (1 - delta)
    discriminant = linear**2 - 8 * n * constant

    # Rounding may leave a discriminant of 0 just below it.
    root = math.sqrt(max(0.0, discriminant))
    other = (root - linear) / (4 * n)

    product = delta * (1 - delta)
    variance = n * (2 * other + product)

    # Without variance any excess is beyond every bound, on its side.
    if variance <= 0:
        return math.copysign(math.inf, excess)
    return excess / math.sqrt(variance)
