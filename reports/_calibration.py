"""Expected calibration error of the digit distributions, corrected by a bootstrap over examples.

The plain error (Naeini et al. 2015) is too large on average: the noise of a bin counts as a gap
between accuracy and confidence. A resample adds such noise once more, which the basic bootstrap
takes off: as Kumar, Liang and Ma (2019, "Verified uncertainty calibration"), the estimate and the
ends of its interval are 2 x error - quantile of the resampled errors (50, 97.5 and 2.5 %).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

RESAMPLES = 1000
_VALUES_A_BATCH = 1 << 20
"""Weights of examples held at a time: 8 MiB of float64."""


@dataclass(frozen=True, slots=True)
class Binned:
    """The positions of one cell, summed by example and bin of confidence.

    `gap` [examples, bins] is the sum of (right - confidence), `size` [examples] the number of
    positions; `count`, `right` and `confidence` [bins] are sums over all of them.
    """

    gap: NDArray[Any]
    size: NDArray[Any]
    count: NDArray[Any]
    right: NDArray[Any]
    confidence: NDArray[Any]

    @property
    def error(self) -> float:
        """The mean over positions of |accuracy - confidence| of their bin, not corrected."""
        return float(np.abs(self.gap.sum(axis=0)).sum() / self.size.sum())


def binned(probes: pd.DataFrame, bins: int) -> Binned:
    """The probes of one cell: digit, target_value, argmax_value, maximum.

    Bins are those of `sklearn.calibration.calibration_curve(strategy="uniform")`.
    """
    example = (probes["digit"] == 0).cumsum().to_numpy(np.int64) - 1  # [M]; 0: a new example
    right = (probes["argmax_value"] == probes["target_value"]).to_numpy(np.float64)
    confidence = probes["maximum"].to_numpy(np.float64)
    at = np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], confidence)  # [M]
    n = int(example[-1]) + 1
    gap = np.bincount(example * bins + at, right - confidence, minlength=n * bins)
    count, rights, sums = (np.bincount(at, w, minlength=bins) for w in (None, right, confidence))
    size = np.bincount(example, minlength=n)
    return Binned(gap.reshape(n, bins), size, count, rights, sums)


class Corrected(NamedTuple):
    """A calibration error without the bias of its bins' noise, and its 95% interval."""

    error: float
    low: float
    high: float


def corrected_errors(losses: list[list[Binned]]) -> list[Corrected | None]:
    """For each loss, given its seeds, the mean of their calibration errors, corrected.

    The examples are resampled, with all their positions, the same for every loss and seed; what
    would be below 0 is 0. All cells must have the same examples; None: there is but one.
    """
    from scipy.stats import bootstrap

    n, bins = losses[0][0].gap.shape
    if n < 2:
        return [None] * len(losses)
    cells = [cell for seeds in losses for cell in seeds]
    gaps = np.concatenate([cell.gap for cell in cells], axis=1)  # [n, cells * bins]
    sizes = np.column_stack([cell.size for cell in cells])  # [n, cells]
    ends = np.cumsum([len(seeds) for seeds in losses])[:-1]

    def errors(drawn: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        """[losses, ...] of resampled examples, [..., n]."""
        weights = np.apply_along_axis(np.bincount, axis, drawn, minlength=n).astype(np.float64)
        absolute = np.abs(weights @ gaps).reshape(*drawn.shape[:-1], len(cells), bins).sum(axis=-1)
        each = absolute / (weights @ sizes)  # [..., cells]
        return np.stack([part.mean(axis=-1) for part in np.split(each, ends, axis=-1)])

    found = bootstrap(
        (np.arange(n),), errors, vectorized=True, n_resamples=RESAMPLES, method="basic",
        batch=max(1, min(RESAMPLES, _VALUES_A_BATCH // n)), rng=np.random.default_rng(0),
    )  # fmt: skip
    middle = 2 * errors(np.arange(n), -1) - np.median(found.bootstrap_distribution, axis=-1)
    rows = np.column_stack([middle, *found.confidence_interval])  # [losses, 3]
    return [Corrected(*row) for row in rows.clip(min=0).tolist()]
