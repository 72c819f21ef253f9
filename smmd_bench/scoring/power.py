"""What a comparison can show: the smallest true difference that its test finds, at 80 %."""

from __future__ import annotations

import math

POWER = 0.8


def smallest_by_t(error: float, df: float, level: float = 0.05, power: float = POWER) -> float:
    """Of a two-sided t-test with this standard error; NaN without an error."""
    from scipy.optimize import brentq
    from scipy.stats import nct, norm, t

    if not error > 0:
        return math.nan
    if df > 1000:
        return float(error * (norm.isf(level / 2) + norm.isf(1 - power)))
    critical = t.isf(level / 2, df)
    shift = brentq(lambda d: nct.sf(critical, df, d) - power, 0, 10 * critical + 10)
    return float(error * shift)


def smallest_by_mcnemar(
    discordant: int, n: int, level: float = 0.05, power: float = POWER
) -> float:
    """Of McNemar's exact test at the discordance that was seen, as a share of n examples.

    Where so few are discordant that the test can never pass the level: the fewest discordant
    examples that can, all on one side.
    """
    from scipy.optimize import brentq
    from scipy.stats import binom

    fewest = math.ceil(1 - math.log2(level))  # 2 * 0.5 ** fewest <= level
    if discordant < fewest:
        return fewest / n
    critical = int(binom.isf(level / 2, discordant, 0.5)) + 1
    share = brentq(
        lambda d: binom.sf(critical - 1, discordant, (1 + d) / 2) - power, 0, 1, xtol=1e-6
    )
    return float(discordant * share / n)
