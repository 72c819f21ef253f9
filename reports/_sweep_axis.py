"""The axis of a sensitivity figure: linear or logarithmic, with a tick at every value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST = 3
"""Values of the parameter that make a sweep."""


def scale_of(values: Iterable[float]) -> str:
    """ "log" where the steps of a grid are more even in ratio than in difference, else "linear".

    A zero is left out of account.
    """
    grid = np.unique([value for value in values if value > 0])
    if len(grid) < LEAST:
        return "linear"
    linear, log = (np.std(steps) / np.mean(steps) for steps in map(np.diff, (grid, np.log(grid))))
    return "log" if log < linear - 1e-9 else "linear"


def set_scale(axis: Axes, grid: Iterable[float]) -> None:
    """A tick at every value of the grid; a zero stands one step to the left of the others.

    On a logarithmic axis // is between them: nothing is to scale there.
    """
    ticks = sorted(set(grid))
    positive = [value for value in ticks if value > 0]
    if scale_of(ticks) == "log" and ticks[0] > 0:
        axis.set_xscale("log")
    elif scale_of(ticks) == "log":
        step = math.log10(positive[-1] / positive[0]) / (len(positive) - 1)
        axis.set_xscale("symlog", linthresh=positive[0], linscale=step)
        how: Any = {"ha": "center", "va": "center", "fontweight": "bold", "zorder": 5}
        axis.text(positive[0] / 2, 0, "//", transform=axis.get_xaxis_transform(), **how)
    axis.set_xticks(ticks, [f"{value:g}" for value in ticks])
    axis.set_xticks([], minor=True)
