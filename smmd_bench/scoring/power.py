"""What a comparison can show: the smallest true difference that its test finds, at 80 %."""

from __future__ import annotations

import math

POWER = 0.8
FEWEST = 3
"""Degrees of freedom, below which an error is not known well enough to say what it hides."""


def smallest_by_t(error: float, df: float, level: float = 0.05, power: float = POWER) -> float:
    """Of a two-sided t-test with this standard error; NaN without an error, and with fewer than
    `FEWEST` degrees of freedom."""
    from scipy.optimize import brentq
    from scipy.stats import nct, norm, t

    if not error > 0 or df < FEWEST:
        return math.nan
    if df > 1000:
        return float(error * (norm.isf(level / 2) + norm.isf(1 - power)))
    critical = t.isf(level / 2, df)
    shift = brentq(lambda d: nct.sf(critical, df, d) - power, 0, 10 * critical + 10)
    return float(error * shift)


def smallest_by_mcnemar(
    discordant: int, n: int, level: float = 0.05, power: float = POWER
) -> float:
    """Of McNemar's exact test, as a share of n examples; NaN where all n are too few.

    The share of discordant examples is the one that was seen, or the difference itself where that
    is larger: a difference of 8 in 2,000 needs 8 discordant ones. How many another sample has
    varies, so its power is the mean over their binomial distribution (J. T. Miettinen, Biometrics
    24, 1968, has its normal approximation).
    """
    from scipy.optimize import brentq

    def lacking(difference: float) -> float:
        return power - _power_of_mcnemar(difference, discordant / n, n, level)

    return math.nan if lacking(1.0) > 0 else float(brentq(lacking, 0, 1, xtol=1e-7))


def _power_of_mcnemar(difference: float, discordance: float, n: int, level: float) -> float:
    """How often the test finds it, on the side that it is on."""
    import numpy as np
    from scipy.stats import binom

    discordance = min(1.0, max(discordance, difference))
    if discordance == 0:
        return 0.0
    least, most = binom.ppf([1e-9, 1 - 1e-9], n, discordance)
    counts = np.arange(least, most + 1)  # [D]
    critical = binom.isf(level / 2, counts, 0.5)  # [D], more than so many wins pass the level
    wins = (1 + difference / discordance) / 2
    return float(binom.pmf(counts, n, discordance) @ binom.sf(critical, counts, wins))
