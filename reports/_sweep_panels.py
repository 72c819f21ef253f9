"""How the sensitivity figures are drawn: curves with bars, bands, rings, and one legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from smmd_bench.publishing.style import GREY, LossStyle, add_legend, loss_label, loss_styles

from ._cells import REFERENCE
from ._panels import Pair, of_pair, panel_grid

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

APART = 6.0
"""Points between the bars of two curves at the same value."""


def sweep_figure(
    data: pd.DataFrame,
    lacking: pd.DataFrame,
    groups: Sequence[Pair],
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
    figure, axes = panel_grid(groups, 2.7)
    styles = loss_styles([REFERENCE, *series])
    for axis, pair in zip(axes.flat, groups, strict=False):
        points, missing = _points(of_pair(data, pair)), of_pair(lacking, pair)["value"].dropna()
        ce = points[points["series"] == REFERENCE].assign(value=0.0)
        grid = [*points["value"].dropna(), *missing, *(ce["value"] if zero else ())]
        _set_scale(axis, grid, scale(grid))
        _band(axis, ce, REFERENCE, styles[REFERENCE])
        curves = {}
        for name in reversed(series):
            curves[name] = points[points["series"] == name].sort_values("value")
            if len(curves[name]) < 2:
                _band(axis, curves.pop(name), name, styles[name])
        for at, (name, curve) in enumerate(curves.items()):
            drawn = _curve(axis, curve, ce if zero else ce[:0], name, styles[name])
            default = curve[curve["value"] == defaults[name]]
            ring: dict[str, Any] = {
                "markersize": 14,
                "fillstyle": "none",
                "color": GREY,
                "zorder": 4,
            }
            drawn += axis.plot(default["value"], default["mean"], "o", label="default", **ring)
            _shift(figure, drawn, APART * ((len(curves) - 1) / 2 - at))
        if zero:
            _bars(axis, ce, styles[REFERENCE])
        if len(missing):
            foot: dict[str, Any] = {
                "color": GREY,
                "transform": axis.get_xaxis_transform(),
                "label": "no result",
            }
            axis.plot(missing, [0.03] * len(missing), "X", linestyle="none", **foot)
        axis.set_xlabel(symbol)
    for axis in axes[:, 0]:
        axis.set_ylabel("Exact match (%)")
    add_legend(figure)
    return figure


def _points(data: pd.DataFrame) -> pd.DataFrame:
    """One row a loss: mean over seeds, and how far its bar goes; one seed: its interval."""
    rows = []
    for _, cells in data.groupby("loss", observed=True):
        first, values = cells.iloc[0], cells["exact_match_value"].astype("float64")
        mean, deviation = values.mean(), values.std()
        below, above = mean - first["exact_match_low"], first["exact_match_high"] - mean
        ends = (below, above) if math.isnan(deviation) else (deviation, deviation)
        rows.append((first["series"], first["value"], mean, *ends))
    found = pd.DataFrame(rows, columns=["series", "value", "mean", "below", "above"])
    numbers = ["value", "mean", "below", "above"]
    found[numbers] = found[numbers].astype("float64")
    found[["below", "above"]] = found[["below", "above"]].fillna(0).clip(lower=0)
    return found


def _bars(axis: Axes, points: pd.DataFrame, style: LossStyle) -> list[Artist]:
    drawn = style.plotted(linestyle="none", elinewidth=1.1, capsize=2.5, zorder=3)
    lengths = points[["below", "above"]].to_numpy().T
    return list(axis.errorbar(points["value"], points["mean"], lengths, **drawn).get_children())


def _curve(
    axis: Axes, points: pd.DataFrame, start: pd.DataFrame, name: str, style: LossStyle
) -> list[Artist]:
    line = pd.concat([frame for frame in (start, points) if len(frame)])
    line = line.drop_duplicates("value", keep="last")
    own = range(len(line) - len(points), len(line))
    drawn = style.plotted(markevery=own, label=loss_label(name), zorder=2)
    return [*axis.plot(line["value"], line["mean"], **drawn), *_bars(axis, points, style)]


def _shift(figure: Figure, drawn: Iterable[Artist], points: float) -> None:
    """Move what is drawn that many points to the right; its data stay what they are."""
    from matplotlib.transforms import ScaledTranslation

    moved = ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)
    for artist in drawn:
        artist.set_transform(artist.get_transform() + moved)


def _band(axis: Axes, points: pd.DataFrame, name: str, style: LossStyle) -> None:
    for mean, below, above in points[["mean", "below", "above"]].to_numpy():
        ends = mean - below, mean + above
        axis.axhspan(*ends, color=style.colour, alpha=0.13, linewidth=0, zorder=0)
        axis.axhline(mean, **style.lined(label=loss_label(name), zorder=1))


def _set_scale(axis: Axes, grid: Iterable[float], scale: str) -> None:
    """A tick at every value of the grid; a zero stands one step to the left of the others.

    On a logarithmic axis // is between them: nothing is to scale there.
    """
    ticks = sorted(set(grid))
    positive = [value for value in ticks if value > 0]
    if scale == "log" and ticks[0] > 0:
        axis.set_xscale("log")
    elif scale == "log":
        step = math.log10(positive[-1] / positive[0]) / (len(positive) - 1)
        axis.set_xscale("symlog", linthresh=positive[0], linscale=step)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        place: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "transform": axis.get_xaxis_transform(),
        }
        axis.text(positive[0] / 2, 0, "//", fontweight="bold", zorder=5, bbox=box, **place)
    axis.set_xticks(ticks, [f"{value:g}" for value in ticks])
    axis.set_xticks([], minor=True)
