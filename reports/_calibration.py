"""Expected calibration error of the digit distributions, with its bootstrap over examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
        """The mean over positions of |accuracy - confidence| of their bin."""
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


def error_intervals(losses: list[list[Binned]]) -> list[tuple[float | None, float | None]]:
    """For each loss, given its seeds, the 95% interval of the mean of their calibration errors.

    The examples are resampled, with all their positions, the same for every loss and seed. The
    interval is the basic one, no lower than 0: a resample adds the noise of its bins to the error
    once more, which the percentile interval would keep and this one takes off. All cells must
    have the same examples; there is no interval of a single one.
    """
    from scipy.stats import DegenerateDataWarning, bootstrap

    n, bins = losses[0][0].gap.shape
    if n < 2:
        return [(None, None)] * len(losses)
    cells = [cell for seeds in losses for cell in seeds]
    gaps = np.concatenate([cell.gap for cell in cells], axis=1)  # [n, cells * bins]
    sizes = np.column_stack([cell.size for cell in cells])  # [n, cells]
    ends = np.cumsum([len(seeds) for seeds in losses])[:-1]

    def errors(index: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        """[losses, batch] of index [batch, n], or [losses] of [n]."""
        drawn = np.atleast_2d(index).astype(np.int64)
        rows = np.arange(len(drawn))[:, None] * n
        weights = np.bincount((drawn + rows).ravel(), minlength=len(drawn) * n)
        weights = weights.reshape(len(drawn), n).astype(np.float64)  # how often each was drawn
        absolute = np.abs(weights @ gaps).reshape(len(drawn), len(cells), bins).sum(axis=2)
        each = (absolute / (weights @ sizes)).T  # [cells, batch]
        found = np.stack([part.mean(axis=0) for part in np.split(each, ends)])
        return found if np.ndim(index) > 1 else found[:, 0]

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)
        interval = bootstrap(
            (np.arange(n, dtype=np.float64),),
            errors,
            vectorized=True,
            n_resamples=RESAMPLES,
            batch=max(1, min(RESAMPLES, _VALUES_A_BATCH // n)),
            method="basic",
            rng=np.random.default_rng(0),
        ).confidence_interval
    low, high = (np.clip(ends, 0, None).tolist() for ends in interval)
    return list(zip(low, high, strict=True))
