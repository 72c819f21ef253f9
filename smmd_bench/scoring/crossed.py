"""The mean difference between two losses over training seeds and test examples, as a mixed model.

A difference of seed s at example e is mu + a_s + b_e + c_se: every seed answers the same examples,
so that both are random effects that cross. In this balanced case the mean squares give the
restricted maximum-likelihood estimates as long as no variance is negative. The interval of mu
speaks of other seeds and of other test sets of that size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..contracts import Metric, Percentage
from .statistics import arrays_of

if TYPE_CHECKING:
    import pandas as pd

VERSION = 2
"""Raise it when pseudo-values come out differently: the name of every comparison has it."""
# A jackknife without each of 10,000 examples would take 10,000 evaluations of a metric.
GROUPS = 200
"""Of the jackknife, at most; so many examples or fewer make a group each."""
# Digits of a pseudo-value: far below its sampling error, half the bytes in files, and equal
# differences stay equal.
_DIGITS = 7


@dataclass(frozen=True, slots=True)
class Crossed:
    """Mean squares of a table of seeds by examples, or by groups of examples.

    of_seed, of_example, of_both: mean squares of the rows, of the columns, and of what both leave.
    With one seed, `of_example` is the variance over the examples, and the others are 0.
    """

    of_seed: float
    of_example: float
    of_both: float
    seeds: int
    examples: int

    @property
    def error(self) -> float:
        """The standard error of the mean; 0 where nothing differs."""
        return math.sqrt(self._square / (self.seeds * self.examples))

    @property
    def df(self) -> float:
        """Satterthwaite's degrees of freedom of `error`."""
        of_seed = self.seeds - 1
        of_example = self.examples - 1

        # Where one mean square is taken for the whole, its degrees of freedom count.
        if self.seeds == 1 or self.of_seed < self.of_both:
            is_of_seed = self._square == self.of_seed
            return float(of_seed if is_of_seed else of_example)
        if self.of_example < self.of_both:
            return float(of_seed)

        spread = self.of_seed**2 / of_seed
        spread += self.of_example**2 / of_example
        spread += self.of_both**2 / (of_seed * of_example)

        # All three are 0 where nothing differs.
        if spread == 0:
            return float(of_example)
        return self._square**2 / spread

    @property
    def _square(self) -> float:
        """Seeds * examples * the variance of the mean; no variance below zero is taken off."""
        return max(
            self.of_seed + self.of_example - self.of_both, self.of_seed, self.of_example
        )

    def planned(self, seeds: int, larger: float = 1.0) -> Crossed:
        """What so many seeds, and so many times as many examples, are expected to give.

        No variance is below zero. One seed does not say what of its spread other seeds repeat: they
        are taken to repeat none of it and to differ by nothing else, which is the least.
        """
        examples = self.examples
        if self.seeds == 1:
            spread = self.of_example / larger
            return Crossed(0.0, spread, spread if seeds > 1 else 0.0, seeds, examples)
        of_both = self.of_both / larger
        of_seed = max(0.0, self.of_seed - self.of_both) / examples
        of_example = max(0.0, self.of_example - self.of_both) / self.seeds / larger
        of_examples = seeds * of_example + of_both
        if seeds == 1:
            return Crossed(0.0, of_examples, 0.0, 1, examples)
        of_seeds = examples * of_seed + of_both
        return Crossed(of_seeds, of_examples, of_both, seeds, examples)


def fit(table: Sequence[Sequence[float]] | NDArray[np.float64]) -> Crossed:
    """The mean squares of differences, shape [seeds, examples]; at least two examples."""
    values = np.asarray(table, dtype=np.float64)  # [S, E]
    seeds, examples = values.shape
    if seeds == 1:
        return Crossed(0.0, float(values.var(ddof=1)), 0.0, 1, examples)

    mean = values.mean()
    by_seed = values.mean(axis=1)  # [S]
    by_example = values.mean(axis=0)  # [E]
    residuals = values - by_seed[:, None] - by_example[None] + mean  # [S, E]
    of_seed = examples * np.square(by_seed - mean).sum()
    of_example = seeds * np.square(by_example - mean).sum()
    of_both = np.square(residuals).sum()
    return Crossed(
        of_seed=float(of_seed / (seeds - 1)),
        of_example=float(of_example / (examples - 1)),
        of_both=float(of_both / ((seeds - 1) * (examples - 1))),
        seeds=seeds,
        examples=examples,
    )


def fit_cells(cells: pd.DataFrame) -> Crossed:
    """The mean squares of the paired differences of cells that differ in their seed.

    `cells` has the columns difference and jackknife of a run's comparisons. Where a cell has no
    jackknife, over the seeds alone; these must be several then.
    """
    tables = [list(values) for values in cells["jackknife"] if isinstance(values, list)]
    have_same_examples = len({*map(len, tables)}) == 1
    if len(tables) == len(cells) and have_same_examples:
        return fit(tables)
    # Two equal examples leave the seeds alone.
    differences = cells["difference"].to_numpy(np.float64)
    return fit(np.repeat(differences[:, None], 2, axis=1))


def pseudo_values(
    metric: Metric, frame: pd.DataFrame, other: pd.DataFrame
) -> list[float] | None:
    """Values whose mean is the metric of `frame` minus that of `other`; None: there is none.

    Both frames have the same examples in the same order. Of a share they are its differences,
    example by example; of another metric jackknife pseudo-values, one a group, so that cells of the
    same examples have the same groups.
    """
    # One example has no spread, so nothing to say of other test sets.
    if len(frame) < 2:
        return None
    columns = arrays_of(metric, frame)
    other_columns = arrays_of(metric, other)

    # A share needs no jackknife: its mean over examples is itself.
    if isinstance(metric, Percentage) and metric.subset is None:
        # Over an axis of one, the share of an example is its own.
        shares = metric.statistic(*np.stack(columns)[:, None], axis=0)
        values = shares - metric.statistic(*np.stack(other_columns)[:, None], axis=0)
    else:
        counted = np.ones(len(frame), dtype=bool)
        if metric.subset is not None:
            # Examples are paired: one that a side lacks has no difference.
            counted = (frame[metric.subset] & other[metric.subset]).to_numpy(bool)
        values = _jackknife(metric, columns, other_columns, counted)

    # Where a group holds all that is valid, the metric without it has no value.
    if not np.isfinite(values).all():
        return None

    # Of 10,000 shares few are different.
    distinct, places = np.unique(values, return_inverse=True)
    rounded = [float(f"{value:.{_DIGITS}g}") for value in distinct]
    return [rounded[place] for place in places]


def _jackknife(
    metric: Metric,
    columns: Sequence[NDArray[np.float64]],
    other_columns: Sequence[NDArray[np.float64]],
    counted: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Pseudo-values of the difference over the counted examples, by the delete-m jackknife for
    unequal m (F. M. T. A. Busing, E. Meijer, R. van der Leeden, Statistics and Computing 9, 1999).
    """

    def difference(kept: NDArray[np.bool_]) -> float:
        if not kept.any():
            return math.nan
        with np.errstate(all="ignore"):
            value = metric.statistic(*[column[kept] for column in columns], axis=-1)
            other = metric.statistic(
                *[column[kept] for column in other_columns], axis=-1
            )
            return float(value - other)

    n = len(counted)
    groups = min(n, GROUPS)

    # Drawn: neighbours in a test set are alike, such as two questions about one chart.
    group = np.random.default_rng(0).permutation(n) * groups // n
    share = np.bincount(group) / n  # [G]
    remaining = (counted & (group != g) for g in range(groups))
    without = np.array([*map(difference, remaining)])  # [G]

    # A pseudo-value is the difference over the examples of its group alone, as far as the metric
    # is a mean. It counts by the size of its group.
    overall = difference(counted)
    with np.errstate(invalid="ignore"):
        values = groups * (overall - (1 - share) * without)  # [G]
        # Tables print the difference as it is, so the jackknife's correction of its bias is off.
        return np.asarray(values + (overall - values.mean()))
