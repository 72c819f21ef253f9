"""How the sensitivity figures are drawn: curves with bars, bands, rings, and one legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from smmd_bench.publishing.style import (
    GREY,
    LossStyle,
    legend_above,
    loss_label,
    loss_styles,
    new_figure,
    width_for,
)
from smmd_bench.scoring.statistics import over_seeds

from ._cells import REFERENCE
from ._panels import pair_title

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
"""Panels side by side."""
APART = 6.0
"""Points between the bars of two curves at the same value."""


def sweep_figure(
    data: pd.DataFrame,
    lacking: pd.DataFrame,
    groups: Sequence[tuple[str, str]],
    *,
    series: Sequence[str],
    symbol: str,
    defaults: Mapping[str, float],
    scale: Callable[[Sequence[float]], str],
    zero: bool,
) -> Figure:
    """One panel a group (model, task).

    `series` are the losses shown besides cross-entropy, the swept one first; `zero`: cross-entropy
    is the point at 0 of every curve; `lacking` are cells of the figure without a result.
    """
    columns = min(COLUMNS, len(groups))
    rows = math.ceil(len(groups) / columns)
    figure = new_figure(width_for(columns), 0.6 + 2.7 * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    styles = loss_styles([REFERENCE, *series])
    for axis, (model, task) in zip(axes, groups, strict=False):
        here = _points(data[(data["model"] == model) & (data["task"] == task)])
        missing = lacking[(lacking["model"] == model) & (lacking["task"] == task)]
        ce = here[here["series"] == REFERENCE]
        grid = [v for v in [*here["value"], *missing["value"]] if math.isfinite(v)]
        if zero and len(ce):
            grid.append(0.0)
        _scale(axis, grid, scale(grid))
        _band(axis, ce, REFERENCE, styles[REFERENCE])
        curves = {}
        for name in reversed(series):
            points = here[here["series"] == name].sort_values("value")
            if len(points) > 1:
                curves[name] = points
            else:
                _band(axis, points, name, styles[name])
        shifts = {name: APART * ((len(curves) - 1) / 2 - at) for at, name in enumerate(curves)}
        for name, points in curves.items():
            start = ce if zero else ce[:0]
            _shift(figure, _curve(axis, points, start, name, styles[name]), shifts[name])
        for name, points in curves.items():
            ring = _ring(axis, points[points["value"] == defaults[name]])
            _shift(figure, [ring], shifts[name])
        if zero:
            _bars(axis, ce.assign(value=0.0), styles[REFERENCE])
        _crosses(axis, missing)
        axis.set_title(pair_title((model, task)))
        axis.set_xlabel(symbol)
    for axis in axes[len(groups) :]:
        axis.set_axis_off()
    for axis in axes[::columns]:
        axis.set_ylabel("Exact match (%)")
    legend_above(figure, axes, columns=4 if columns == 1 else 6)
    return figure


def _points(data: pd.DataFrame) -> pd.DataFrame:
    """One row a loss: mean over seeds, and the ends of its bar; one seed: its interval."""
    rows = []
    for _, cells in data.groupby("loss", observed=True):
        first = cells.iloc[0]
        mean, deviation = over_seeds([float(v) for v in cells["exact_match_value"]])
        low, high = first["exact_match_low"], first["exact_match_high"]
        if deviation is not None:
            low, high = mean - deviation, mean + deviation
        ends = [mean if end is None or pd.isna(end) else float(end) for end in (low, high)]
        rows.append((first["series"], float(first["value"]), mean, *ends))
    return pd.DataFrame(rows, columns=["series", "value", "mean", "low", "high"])


def _bars(axis: Axes, points: pd.DataFrame, style: LossStyle) -> Sequence[Artist]:
    lengths = [points["mean"] - points["low"], points["high"] - points["mean"]]
    bars = axis.errorbar(
        points["value"],
        points["mean"],
        yerr=np.array(lengths).clip(min=0),
        fmt=style.marker,
        color=style.colour,
        markersize=_size(style),
        elinewidth=1.1,
        capsize=2.5,
        zorder=3,
    )
    return bars.get_children()


def _shift(figure: Figure, drawn: Sequence[Artist], points: float) -> None:
    """Move what is drawn that many points to the right; its data stay what they are."""
    from matplotlib.transforms import ScaledTranslation

    moved = ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)
    for artist in drawn:
        artist.set_transform(artist.get_transform() + moved)


def _curve(
    axis: Axes, points: pd.DataFrame, at_zero: pd.DataFrame, name: str, style: LossStyle
) -> Sequence[Artist]:
    start = at_zero.assign(value=0.0)
    line = pd.concat([frame for frame in (start, points) if len(frame)])
    line = line.drop_duplicates("value", keep="last")
    drawn = axis.plot(
        line["value"],
        line["mean"],
        color=style.colour,
        linestyle=style.line,
        marker=style.marker,
        markersize=_size(style),
        markevery=range(len(line) - len(points), len(line)),
        label=loss_label(name),
        zorder=2,
    )
    return [*drawn, *_bars(axis, points, style)]


def _ring(axis: Axes, point: pd.DataFrame) -> Artist:
    (ring,) = axis.plot(
        point["value"],
        point["mean"],
        "o",
        markersize=14,
        fillstyle="none",
        color=GREY,
        label="default",
        zorder=4,
    )
    return ring


def _size(style: LossStyle) -> int:
    """A star needs more room than other markers to look as large."""
    return 8 if style.marker == "*" else 5


def _band(axis: Axes, point: pd.DataFrame, name: str, style: LossStyle) -> None:
    for mean, low, high in point[["mean", "low", "high"]].to_numpy(float):
        axis.axhspan(low, high, color=style.colour, alpha=0.13, linewidth=0, zorder=0)
        axis.axhline(
            mean, color=style.colour, linestyle=style.line, label=loss_label(name), zorder=1
        )


def _crosses(axis: Axes, missing: pd.DataFrame) -> None:
    """What has no result, at the foot of the panel."""
    values = missing["value"].dropna().unique()
    if len(values):
        axis.plot(
            values,
            [0.03] * len(values),
            "X",
            color=GREY,
            linestyle="none",
            transform=axis.get_xaxis_transform(),
            label="no result",
        )


def _scale(axis: Axes, grid: Sequence[float], scale: str) -> None:
    """A tick at every value of the grid; a zero stands one step to the left of the others.

    On a logarithmic axis // is between them: nothing is to scale there.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ticks = sorted(set(grid))
    positive = [value for value in ticks if value > 0]
    if scale == "log" and ticks[0] > 0:
        axis.set_xscale("log")
    elif scale == "log":
        step = math.log10(positive[-1] / positive[0]) / (len(positive) - 1)
        axis.set_xscale("symlog", linthresh=positive[0], linscale=step)
        axis.text(
            positive[0] / 2, 0, "//", ha="center", va="center", fontweight="bold",
            transform=axis.get_xaxis_transform(), zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )  # fmt: skip
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_locator(NullLocator())
