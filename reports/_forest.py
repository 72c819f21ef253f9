"""The picture of the verdict: a forest with a row for each loss, an interval and what it says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.publishing import style
from smmd_bench.publishing.style import LossStyle, folded, loss_label, shortened
from smmd_bench.publishing.tables import number, p_value, with_interval
from smmd_bench.results.pairing import find_reference, judged_metrics
from smmd_bench.scoring.gain import OVER_SEEDS

from ._panels import name_pair, stack_parts
from ._results import count_digits, list_pairs, select_pair, select_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

NOISE = ", other seeds"
"""What the row of cross-entropy against itself, the noise floor, is called besides."""
GROUPS, WIDEST = 8, 3.0
"""Models and tasks drawn at most, and how far an axis goes, in units of the largest difference or
of the median of those that could be found."""
LETTERS = 24
"""Letters of a line that names a loss."""
BAND = "#D9DCDF"
COLOURS = {"better": "#1B5E20", "worse": "#A01313"}
"""Of the words; those of the losses are others."""
BANDED = "too small to be found with a probability of 80 %"
DRAWN = "difference with 95 % interval"


def draw_verdicts(run: Run, data: pd.DataFrame) -> Figure:
    """A block of panels a model and task, as high as it has losses."""
    drawn_pairs = list_pairs(data)[:GROUPS]
    blocks = [select_pair(data, pair) for pair in drawn_pairs]
    # In inches: 0.33 a loss, and 1.25 for the heading, the titles and the axis.
    heights = [1.25 + 0.33 * block["loss"].nunique() for block in blocks]
    figure = style.new_figure(style.WIDTH, 0.35 + sum(heights))
    parts = stack_parts(figure, heights)

    # A loss has one colour in all blocks.
    styles = style.loss_styles(data["loss"].cat.categories)
    for part, pair, block in zip(parts, drawn_pairs, blocks, strict=True):
        heading = f"{name_pair(pair)}: {block['n'].max():,} test examples"
        part.suptitle(
            folded(heading, 100),
            x=0.01,
            ha="left",
            fontsize=9.5,
        )
        _draw_block(part, block, find_reference(run), styles)
    _add_legend(figure)
    return figure


def _draw_block(
    part: SubFigure, block: pd.DataFrame, other: str, styles: Mapping[str, LossStyle]
) -> None:
    """A panel a metric, a row a loss; the noise floor is the last one."""
    metrics = []
    task = str(block["task"].iloc[0])
    for metric in judged_metrics(task):
        rows = select_rows(block, metric=metric.name)
        # An error of losses that never answer with a number has no difference to draw.
        if not rows.empty:
            metrics.append(rows)

    # The noise floor is no loss to judge, and stands below them.
    losses = [*block["loss"].sort_values().unique()]
    losses.sort(key=lambda loss: loss == other)

    names = []
    for loss in losses:
        name = loss_label(loss)
        if loss == other:
            name += NOISE
        # A row has room for two lines.
        names.append(folded(shortened(name, 2 * LETTERS - 8), LETTERS))

    axes = part.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    for axis, rows in zip(axes, metrics, strict=True):
        _draw_panel(axis, other, rows, losses, styles)

    # The rows of all panels are those of the first, from the top.
    axes[0].set_yticks(range(len(losses)), names)
    axes[0].set_ylim(len(losses) - 0.5, -0.5)


def _add_legend(figure: Figure) -> None:
    """What a marker and a band are; the losses are named beside their rows."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    # Drawn for the legend alone, in black: it stands for the colours of all losses.
    line = Line2D(
        [],
        [],
        color="black",
        linewidth=1.6,
        marker="o",
        markerfacecolor="white",
        label=DRAWN,
    )
    band = Patch(color=BAND, label=BANDED)
    figure.legend(
        handles=[line, band],
        loc="outside lower center",
        ncols=2,
        fontsize=8,
    )


def _draw_panel(
    axis: Axes,
    other: str,
    data: pd.DataFrame,
    losses: list[str],
    styles: Mapping[str, LossStyle],
) -> None:
    """The rows of one metric, below the value that they are compared with."""
    first = data.iloc[0]
    label = first["label"]
    name = shortened(loss_label(other), 14)
    value = number(first["against_value"], count_digits(label))
    axis.set_title(f"{label}, {name} {value}", loc="left")

    # Of an error a smaller value is better, and the axis is turned round.
    bound = _choose_bound(data)
    direction = ""
    if first["better"] == "lower":
        bound = -bound
        direction = ", axis reversed"
    axis.set_xlabel(f"Δ {label} to {name}{direction}\n← worse · better →")
    axis.set_xlim(-bound, bound)
    axis.axvline(0, color="black", linewidth=0.9)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    for gain in data.to_dict("records"):
        _draw_gain(axis, gain, losses.index(gain["loss"]), styles[gain["loss"]])


def _choose_bound(data: pd.DataFrame) -> float:
    """How far the axis goes: to the last end, but not so far that differences become dots."""
    ends = data[["difference", "low", "high", "smallest"]].abs().to_numpy(dtype=float)
    smallest = ends[:, 3][np.isfinite(ends[:, 3])]
    median = np.median(smallest) if len(smallest) else np.inf
    farthest = np.max(ends, initial=0, where=np.isfinite(ends))

    # Intervals of a few examples may be a hundred times as long as the others.
    limit = WIDEST * max(np.nanmax(ends[:, 0]), median)
    # Where all losses are equal there is no end, and an axis without length cannot be drawn.
    return float(1.06 * min(farthest, limit)) or 1.0


def _draw_gain(axis: Axes, gain: dict[Any, Any], row: int, look: LossStyle) -> None:
    """The band of what could not be found, the interval, the difference and the verdict."""
    smallest = gain["smallest"]
    # Without a test there is no smallest difference that it could find.
    if math.isfinite(smallest):
        axis.barh(
            row,
            2 * smallest,
            0.72,
            -smallest,
            color=BAND,
            zorder=0,
        )
    else:
        reason = "more seeds" if math.isfinite(gain["p_holm"]) else "not tested"
        place = axis.get_yaxis_transform()
        text = f"no band: {reason}"
        axis.text(0.01, row - 0.33, text, size=6.5, va="center", transform=place)
    axis.plot(
        [gain["low"], gain["high"]],
        [row, row],
        "|-",
        color=look.colour,
        linewidth=1.8,
        markersize=7,
    )

    # An open marker warns that its interval says nothing of other seeds.
    filled = look.colour if gain["interval"] == OVER_SEEDS else "white"
    axis.plot(gain["difference"], row, **look.plotted(6, markerfacecolor=filled))

    # The band shows what the words in parentheses say.
    verdict, _, _ = str(gain["verdict"]).partition(" (")
    values = with_interval(
        gain["difference"], gain["low"], gain["high"], count_digits(gain["label"]), sign=True
    )  # fmt: skip
    tested = [values]
    if math.isfinite(gain["p_holm"]):
        tested.append(f"p {p_value(gain['p_holm'])}")

    beside: dict[str, Any] = {"transform": axis.get_yaxis_transform(), "fontsize": 8}
    colour = COLOURS.get(verdict, "black")
    axis.text(
        1.03, row - 0.04, verdict, va="bottom", weight="bold", color=colour, **beside
    )
    axis.text(1.03, row + 0.04, ", ".join(tested), va="top", **beside)
