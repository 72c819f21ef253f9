"""Which losses are better than what they are compared with, all of a table tested at once."""

from __future__ import annotations

import pandas as pd

from ._cells import KEY

LEVEL = 0.05
"""A corrected p below it counts as significant."""
TESTS = (
    "Of several seeds interval and p are those of a mixed model of the paired differences, with "
    "crossed random effects of seed and test example and Satterthwaite's degrees of freedom: they "
    "speak of other seeds and other test sets. Of one seed they speak of other test sets alone: "
    "Tango's interval and McNemar's exact test for exact match, the paired bootstrap for other "
    "metrics.",
    "Holm's correction is over the losses of a model, task and metric. The row of CE compares it "
    "with CE of other seeds, in disjoint pairs: the noise floor.",
)


def bold_best(data: pd.DataFrame, column: str) -> list[tuple[int, str]]:
    """`table.attrs["bold"]` of a table with one row a model, task and loss of tested cells."""
    best = data.groupby(KEY, observed=True)["best"].first()
    return [(at, column) for at, found in enumerate(best) if found]
