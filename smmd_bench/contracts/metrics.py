"""Metrics over the scored examples of a cell (`smmd_bench.scoring.score` says the columns).

Every `statistic` reduces one axis of its columns, so that a whole batch of resamples is computed in
one call. An accuracy of 43.39 is 43.39 %. A sum beyond float64 is infinite: "no value".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .task import Better

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .task import Metric

    Array = NDArray[np.float64]


@dataclass(frozen=True)
class Percentage:
    """Base of metrics that are the mean of one column of values from 0 to 1, in percent."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    label: ClassVar[str]
    better: ClassVar[Better] = "higher"
    columns: ClassVar[tuple[str, ...]]
    subset: ClassVar[str | None] = None

    def statistic(self, *columns: Array, axis: int = -1) -> Array:
        """Mean of the column along `axis`, times 100."""
        return np.asarray(100.0 * np.mean(columns[0], axis=axis, dtype=np.float64))


def percentage(name: str, label: str, column: str) -> Percentage:
    """A metric of a column that a task's `annotate` gives, from 0 to 1: its mean in percent."""
    attributes = {"name": name, "label": label, "columns": (column,)}
    metric: type[Percentage] = type(name, (Percentage,), attributes)
    return metric()


class ExactMatch(Percentage):
    """Share of examples whose parsed value equals the answer, in percent: `1/2` is `0.5`."""

    name: ClassVar[str] = "exact_match"
    label: ClassVar[str] = "Acc (%)"
    columns: ClassVar[tuple[str, ...]] = ("exact",)


class TextMatch(Percentage):
    """Share of examples whose completion is the target text, letter by letter, in percent."""

    name: ClassVar[str] = "text_match"
    label: ClassVar[str] = "Text match (%)"
    columns: ClassVar[tuple[str, ...]] = ("text_match",)


class TruncationRate(Percentage):
    """Share of completions cut off by the limit of new tokens, in percent."""

    name: ClassVar[str] = "truncation_rate"
    label: ClassVar[str] = "Truncated (%)"
    better: ClassVar[Better] = "lower"
    columns: ClassVar[tuple[str, ...]] = ("truncated",)


class ParseFailureRate(Percentage):
    """Share of completions in which no answer can be read, in percent."""

    name: ClassVar[str] = "parse_failure_rate"
    label: ClassVar[str] = "Parse failures (%)"
    better: ClassVar[Better] = "lower"
    columns: ClassVar[tuple[str, ...]] = ("valid",)

    def statistic(self, *columns: Array, axis: int = -1) -> Array:
        """100 minus the mean of `valid` in percent."""
        return np.asarray(100.0 - super().statistic(*columns, axis=axis))


@dataclass(frozen=True)
class MeanAbsoluteError:
    """Mean of |parsed - answer| over the examples that parse; one wild one can dominate it."""

    name: ClassVar[str] = "mean_absolute_error"
    version: ClassVar[int] = 1
    label: ClassVar[str] = "MAE"
    better: ClassVar[Better] = "lower"
    columns: ClassVar[tuple[str, ...]] = ("error",)
    subset: ClassVar[str | None] = "valid"

    def statistic(self, *columns: Array, axis: int = -1) -> Array:
        """Mean of `error` along `axis`."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.mean(columns[0], axis=axis, dtype=np.float64))


@dataclass(frozen=True)
class TrimmedAbsoluteError(MeanAbsoluteError):
    """Mean of |parsed - answer| without the largest tenth, over the examples that parse."""

    name: ClassVar[str] = "trimmed_absolute_error"
    version: ClassVar[int] = 2
    label: ClassVar[str] = "MAE of 90 %"

    def statistic(self, *columns: Array, axis: int = -1) -> Array:
        """Mean of the smallest 90 % of `error` along `axis`.

        Of 7 errors 6.3 count: the six smallest, and 0.3 of the seventh. Without that fraction, one
        example more or less moves the mean by a whole error, and its jackknife is many times too
        wide.
        """
        errors = np.moveaxis(columns[0], axis, -1)
        count, tenths = divmod(9 * errors.shape[-1], 10)
        if tenths:
            count += 1
        smallest = np.partition(errors, count - 1, axis=-1)
        smallest = smallest[..., :count]

        # Partition leaves the largest of them last: it is the one that counts in part.
        weights = np.ones(count)
        if tenths:
            weights[-1] = tenths / 10
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.sum(smallest * weights, axis=-1)
            return np.asarray(total / weights.sum())


@dataclass(frozen=True)
class RSquared:
    """Coefficient of determination, 1 - SS_res / SS_tot; NaN where all answers are the same."""

    name: ClassVar[str] = "r_squared"
    version: ClassVar[int] = 1
    label: ClassVar[str] = "R²"
    better: ClassVar[Better] = "higher"
    columns: ClassVar[tuple[str, ...]] = ("answer", "parsed")
    subset: ClassVar[str | None] = "valid"

    def statistic(self, *columns: Array, axis: int = -1) -> Array:
        """R² of `parsed` against `answer` along `axis`."""
        answer, parsed = columns
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            residual = np.sum(np.square(answer - parsed), axis=axis)
            centred = answer - np.mean(answer, axis=axis, keepdims=True)
            spread = np.sum(np.square(centred), axis=axis)
            # Rounding of the mean can give equal answers a spread other than 0.
            constant = np.max(answer, axis=axis) == np.min(answer, axis=axis)
            return np.where(constant, np.nan, 1.0 - residual / spread)


ERRORS: tuple[Metric, ...] = (MeanAbsoluteError(), TrimmedAbsoluteError(), RSquared())
"""How far off answers are: the metrics of every task whose answers are one number."""
