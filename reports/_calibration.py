"""Expected calibration error of the digit distributions, corrected by a bootstrap over examples.

The plain error (Naeini et al. 2015) is too large on average: the noise of a bin counts as a gap
between accuracy and confidence. A resample of the examples adds such noise once more, so that its
error is larger by about as much again, which the basic bootstrap takes off. As in the library of
Kumar, Liang and Ma (2019, "Verified uncertainty calibration"), the estimate and the ends of its
interval are 2 x error - quantile of the resampled errors, at 50 % and at 97.5 and 2.5 %: all three
are of one kind, and the estimate is within its interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
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

    gap: NDArray[np.float64]
    size: NDArray[np.float64]
    count: NDArray[np.float64]
    right: NDArray[np.float64]
    confidence: NDArray[np.float64]

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
    return Binned(
        gap.astype(np.float64).reshape(n, bins),
        np.bincount(example, minlength=n).astype(np.float64),
        *(
            np.bincount(at, weights, minlength=bins).astype(np.float64)
            for weights in (None, right, confidence)
        ),
    )


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
    n, bins = losses[0][0].gap.shape
    if n < 2:
        return [None] * len(losses)
    cells = [cell for seeds in losses for cell in seeds]
    gaps = np.concatenate([cell.gap for cell in cells], axis=1)  # [n, cells * bins]
    sizes = np.column_stack([cell.size for cell in cells])  # [n, cells]
    ends = np.cumsum([len(seeds) for seeds in losses])[:-1]

    def errors(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """[losses, batch] of how often each example counts, [batch, n]."""
        absolute = np.abs(weights @ gaps).reshape(len(weights), len(cells), bins).sum(axis=2)
        each = (absolute / (weights @ sizes)).T  # [cells, batch]
        return np.stack([part.mean(axis=0) for part in np.split(each, ends)])

    rng = np.random.default_rng(0)
    batch = max(1, min(RESAMPLES, _VALUES_A_BATCH // n))
    resampled = np.concatenate(
        [
            errors(_drawn(rng, min(batch, RESAMPLES - start), n))
            for start in range(0, RESAMPLES, batch)
        ],
        axis=1,
    )  # [losses, RESAMPLES]
    plain = errors(np.ones((1, n)))  # [losses, 1]
    quantiles = np.quantile(resampled, [0.5, 0.975, 0.025], axis=1)  # [3, losses]
    return [Corrected(*row) for row in np.clip(2 * plain - quantiles.T, 0, None).tolist()]


def _drawn(rng: np.random.Generator, resamples: int, n: int) -> NDArray[np.float64]:
    """How often each of n examples is in each resample: [resamples, n]."""
    drawn = rng.integers(0, n, (resamples, n)) + np.arange(resamples)[:, None] * n
    counts = np.bincount(drawn.ravel(), minlength=resamples * n)
    return counts.reshape(resamples, n).astype(np.float64)
