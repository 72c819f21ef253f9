"""The mean difference between two losses over training seeds and test examples, as a mixed model.

A difference of seed s at example e is mu + a_s + b_e + c_se: every seed answers the same examples,
so that both are random effects that cross. In this balanced case the mean squares give the
restricted maximum-likelihood estimates as long as no variance is negative. The interval of mu
speaks of other seeds and of other test sets of that size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


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
        if self._square == self.of_example:
            return float(examples)
        if self._square == self.of_seed:
            return float(seeds)
        parts = (self.of_seed, seeds), (self.of_example, examples), (self.of_both, seeds * examples)
        return self._square**2 / sum(square**2 / df for square, df in parts)

    @property
    def _square(self) -> float:
        """Seeds * examples * the variance of the mean; no variance below zero is taken off."""
        return max(self.of_seed + self.of_example - self.of_both, self.of_seed, self.of_example)

    def error_of(self, seeds: int, larger: float = 1.0) -> float:
        """The standard error with so many seeds, and so many times as many examples.

        With one seed seen, its variance over seeds is taken for zero.
        """
        of_seeds = max(0.0, self.of_seed - self.of_both) / self.examples
        of_examples = max(0.0, self.of_example - self.of_both) / self.seeds
        if self.seeds == 1:
            of_seeds, of_examples = 0.0, self.of_example
        examples = self.examples * larger
        rest = self.of_both / (seeds * examples)
        return math.sqrt(of_seeds / seeds + of_examples / examples + rest)


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


def t_interval(
    mean: float, error: float, df: float, confidence: float = 0.95
) -> tuple[float, float]:
    """The bounds of Student's interval."""
    from scipy.stats import t

    half = float(t.isf((1 - confidence) / 2, df)) * error
    return mean - half, mean + half


def t_test(mean: float, error: float, df: float) -> float:
    """The two-sided p of a mean of zero; NaN where there is no error to divide by."""
    from scipy.stats import t

    return float(2 * t.sf(abs(mean) / error, df)) if error > 0 else math.nan
