"""The paired differences to cross-entropy below a sensitivity figure, by value of the parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from smmd_bench.contracts import ExactMatch, Run
from smmd_bench.publishing.style import LossStyle

from ._cells import KEY, REFERENCE, metrics_of
from ._gains import gains, reference_of, seed_gains

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

COLUMNS = ["difference", "low", "high"]


def differences(run: Run, data: pd.DataFrame) -> pd.DataFrame:
    """One row a loss of `data`, over its seeds: model, task, series, value, difference, low, high.

    Empty where nothing is compared with cross-entropy.
    """
    compared = seed_gains(
        run, lambda task: [metric for metric in metrics_of(task) if metric.name == ExactMatch.name]
    )
    seeds = compared.merge(data[[*KEY, "seed"]], on=[*KEY, "seed"])
    named = data.drop_duplicates(KEY)[[*KEY, "series", "value"]]
    if seeds.empty or reference_of(run) != REFERENCE:
        return named[:0].reindex(columns=[*named, *COLUMNS])
    return named.merge(gains(seeds)[[*KEY, *COLUMNS]], on=KEY)


def draw_differences(axis: Axes, points: pd.DataFrame, style: LossStyle) -> list[Artist]:
    """The differences of a curve with their intervals."""
    points = points.sort_values("value")
    middle = points["difference"]
    ends = np.array([middle - points["low"], points["high"] - middle]).clip(min=0)
    drawn = style.plotted(elinewidth=1.1, capsize=2.5, zorder=3)
    return list(axis.errorbar(points["value"], middle, np.nan_to_num(ends), **drawn).get_children())
