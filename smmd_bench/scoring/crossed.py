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

if TYPE_CHECKING:
    import pandas as pd

VERSION = 2
"""Raise it when pseudo-values come out differently: the name of every comparison has it."""
GROUPS = 200
"""Of the jackknife, at most; so many examples or fewer make a group each."""
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
        seeds, examples = self.seeds - 1, self.examples - 1
        if self.seeds == 1 or self.of_seed < self.of_both:
            return float(seeds if self._square == self.of_seed else examples)
        if self.of_example < self.of_both:
            return float(seeds)
        parts = (self.of_seed, seeds), (self.of_example, examples), (self.of_both, seeds * examples)
        spread = sum(square**2 / df for square, df in parts)
        return self._square**2 / spread if spread else float(examples)

    @property
    def _square(self) -> float:
        """Seeds * examples * the variance of the mean; no variance below zero is taken off."""
        return max(self.of_seed + self.of_example - self.of_both, self.of_seed, self.of_example)

    def planned(self, seeds: int, larger: float = 1.0) -> Crossed:
        """What so many seeds, and so many times as many examples, are expected to give.

        No variance is below zero. One seed does not say what of its spread other seeds repeat: they
        are taken to repeat none of it and to differ by nothing else, which is the least.
        """
        if self.seeds == 1:
            spread = self.of_example / larger
            return Crossed(0.0, spread, spread if seeds > 1 else 0.0, seeds, self.examples)
        of_both = self.of_both / larger
        of_seed = max(0.0, self.of_seed - self.of_both) / self.examples
        of_example = max(0.0, self.of_example - self.of_both) / self.seeds / larger
        return Crossed(
            self.examples * of_seed + of_both if seeds > 1 else 0.0,
            seeds * of_example + of_both,
            of_both if seeds > 1 else 0.0,
            seeds,
            self.examples,
        )


def fit(table: Sequence[Sequence[float]] | NDArray[np.float64]) -> Crossed:
    """The mean squares of differences, shape [seeds, examples]; at least two examples."""
    values = np.asarray(table, dtype=np.float64)
    seeds, examples = values.shape
    if seeds == 1:
        return Crossed(0.0, float(values.var(ddof=1)), 0.0, 1, examples)
    mean, rows, columns = values.mean(), values.mean(axis=1), values.mean(axis=0)
    rest = values - rows[:, None] - columns[None] + mean
    return Crossed(
        float(examples * np.square(rows - mean).sum() / (seeds - 1)),
        float(seeds * np.square(columns - mean).sum() / (examples - 1)),
        float(np.square(rest).sum() / ((seeds - 1) * (examples - 1))),
        seeds,
        examples,
    )


def fit_cells(cells: pd.DataFrame) -> Crossed:
    """The mean squares of the paired differences of cells that differ in their seed.

    `cells` has the columns difference and jackknife of a run's comparisons. Where a cell has no
    jackknife, over the seeds alone; these must be several then.
    """
    tables = [list(values) for values in cells["jackknife"] if isinstance(values, list)]
    if len(tables) == len(cells) and len({*map(len, tables)}) == 1:
        return fit(tables)
    return fit(np.repeat(cells["difference"].to_numpy(np.float64)[:, None], 2, axis=1))


def pseudo_values(metric: Metric, frame: pd.DataFrame, other: pd.DataFrame) -> list[float] | None:
    """Values whose mean is the metric of `frame` minus that of `other`; None: there is none.

    Both frames have the same examples in the same order. Of a share they are its differences,
    example by example; of another metric jackknife pseudo-values, one a group, so that cells of the
    same examples have the same groups.
    """
    if len(frame) < 2:
        return None
    sides = [
        [part[column].to_numpy(np.float64) for column in metric.columns] for part in (frame, other)
    ]
    if isinstance(metric, Percentage) and metric.subset is None:
        here, there = (metric.statistic(*[c[None] for c in side], axis=0) for side in sides)
        values = here - there
    else:
        counted = np.ones(len(frame), dtype=bool)
        if metric.subset is not None:
            counted = (frame[metric.subset] & other[metric.subset]).to_numpy(bool)
        values = _jackknife(metric, sides, counted)
    if not np.isfinite(values).all():
        return None
    return [float(f"{value:.{_DIGITS}g}") for value in values]


def _jackknife(
    metric: Metric, sides: Sequence[Sequence[NDArray[np.float64]]], counted: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Pseudo-values of the difference over the counted examples, by the delete-m jackknife for
    unequal m (F. M. T. A. Busing, E. Meijer, R. van der Leeden, Statistics and Computing 9, 1999).
    """

    def difference(kept: NDArray[np.bool_]) -> float:
        if not kept.any():
            return math.nan
        with np.errstate(all="ignore"):
            here, there = (metric.statistic(*[c[kept] for c in side], axis=-1) for side in sides)
            return float(here - there)

    n = len(counted)
    groups = min(n, GROUPS)
    group = np.random.default_rng(0).permutation(n) * groups // n  # once for this n
    share = np.bincount(group) / n
    without = np.array([difference(counted & (group != g)) for g in range(groups)])

    # A pseudo-value is the difference over the examples of its group alone, as far as the metric
    # is a mean. It counts by the size of its group.
    overall = difference(counted)
    with np.errstate(invalid="ignore"):
        values = groups * (overall - (1 - share) * without)
        # Tables print the difference as it is, so the jackknife's correction of its bias is off.
        return np.asarray(values + (overall - values.mean()))
