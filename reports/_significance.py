"""Which losses are better than what they are compared with, all of a table tested at once."""

from __future__ import annotations

import pandas as pd

from ._cells import KEY, REFERENCE

LEVEL = 0.05
"""A corrected p below it counts as significant."""
_SEVERAL = (
    "Of several seeds interval and p are those of a mixed model of the paired differences, with "
    "crossed random effects of seed and test example and Satterthwaite's degrees of freedom: they "
    "speak of other seeds and other test sets."
)
_ONE = (
    "speak of other test sets alone: Tango's interval and McNemar's exact test for exact match, "
    "the paired bootstrap for other metrics."
)
_HOLM = "Holm's correction is over the losses of a model, task and metric."


def tests_notes(data: pd.DataFrame, noise: str) -> list[str]:
    """How the rows of `_verdicts.verdicts` were tested, where there are such; `noise` names the
    noise floor."""
    if data.empty:
        return []
    several, one = (data["seeds"] > 1).any(), (data["seeds"] == 1).any()
    of_one = f"{'Of one seed they' if several else 'Interval and p'} {_ONE}"
    tests = [_SEVERAL] * bool(several) + [of_one] * bool(one)
    holm = [_HOLM] + [floor_of(noise)] * bool((data["loss"] == REFERENCE).any())
    return [" ".join(tests), " ".join(holm)]


def floor_of(row: str) -> str:
    """What the row of this name is, which compares a loss with itself."""
    return f"The row {row} compares disjoint pairs of its seeds: the noise floor."


def bold_best(data: pd.DataFrame, column: str) -> list[tuple[int, str]]:
    """`table.attrs["bold"]` of a table with one row a model, task and loss of tested cells."""
    best = data.groupby(KEY, observed=True)["best"].first()
    return [(at, column) for at, found in enumerate(best) if found]
