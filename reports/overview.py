"""The verdict as one picture: each loss against cross-entropy, by first metric and error.

Not in the paper. The home page shows that of `make demo`.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing import style
from smmd_bench.publishing.style import folded, loss_label, shortened
from smmd_bench.publishing.tables import number, p_value, with_interval
from smmd_bench.scoring.gain import OVER_SEEDS

from . import _gains
from ._caption import when, write_caption
from ._cells import main_losses
from ._gains import noise_label, reference_of, unknown_note
from ._panels import Pair, of_pair, pair_name, pairs
from ._verdicts import digits_of, judged_metrics, verdicts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

PAIRS, LOSSES = 3, 8
"""Models and tasks, and losses of each, drawn at most; the table of the verdict has all."""
ROOM = 1.5
"""How far an axis goes at least, in units of the smallest difference that could be found."""
LETTERS, SHORT = 14, 8
"""Of the label that the others are compared with, at a panel: at most, and beside other words in a
line. The caption has all of it."""
BAND = "#D9DCDF"
COLOURS = {"better": "#1B5E20", "worse": "#A01313"}
"""Of the words; those of the losses are others."""
BANDED = "too small to be found with a probability of 80 %"
DRAWN = "difference with 95 % interval"


@dataclass(frozen=True)
class Overview:
    """The verdict of each loss, with the difference and what could have been seen."""

    name: ClassVar[str] = "overview"
    title: ClassVar[str] = "Did the loss help? The verdict as a picture"
    paper: ClassVar[str] = "not in the paper"
    order: ClassVar[int] = 0

    def skip(self, run: Run) -> str | None:
        """A loss with results beside cross-entropy's is needed."""
        return _gains.why_no_gain(run)

    def build(self, run: Run) -> Artefact:
        """One row of panels a model and task: its first metric, and its error if it has one."""
        run, left = main_losses(run)
        data = verdicts(run)
        blocks = _blocks(data)
        seeds = data.loc[data["loss"] != reference_of(run), "seeds"]
        caption = write_caption(
            run,
            run.cells,
            f"Differences to {loss_label(reference_of(run))} on the same test examples and seeds; "
            "right of the line is better. The band of a row ends at the smallest true difference "
            "that its test finds with a probability of 80 %; smaller ones are found more rarely.",
            _gains.INTERVALS,
            "p is corrected by Holm over the losses of a model, task and metric.",
            when((data["better"] == "lower").any(), "Where lower is better the axis is reversed."),
            "An arrow: the interval goes on beyond the panel.",
            when((seeds == 1).any(), "One seed: no interval covers the randomness of training."),
            _not_drawn(data, blocks),
            unknown_note(run),
            left,
        )
        figure = _figure(run, blocks, data["loss"].cat.categories)
        return Artefact(figure=figure, data=data.drop(columns="against"), **caption)


def _blocks(data: pd.DataFrame) -> dict[Pair, pd.DataFrame]:
    """The rows of the first models and tasks, and of these the first losses."""
    found = {}
    for pair in pairs(data)[:PAIRS]:
        here = of_pair(data, pair)
        found[pair] = here[here["loss"].isin(here["loss"].sort_values().unique()[:LOSSES])]
    return found


def _not_drawn(data: pd.DataFrame, blocks: dict[Pair, pd.DataFrame]) -> str:
    """A sentence on the models and tasks, and the losses, that there is no room for."""
    names = [pair_name(pair) for pair in pairs(data) if pair not in blocks]
    for pair, here in blocks.items():
        more = of_pair(data, pair)["loss"].nunique() - here["loss"].nunique()
        names += [f"{more} losses of {pair_name(pair)}"] * (more > 0)
    return f"Not drawn for lack of room: {'; '.join(names)}." if names else ""


def _figure(run: Run, blocks: dict[Pair, pd.DataFrame], losses: pd.Index[str]) -> Figure:
    heights = [1.1 + 0.4 * here["loss"].nunique() for here in blocks.values()]
    figure = style.new_figure(style.WIDTH, 0.35 + sum(heights))
    parts = figure.subfigures(len(blocks), 1, squeeze=False, height_ratios=heights)[:, 0]
    for part, (pair, here) in zip(parts, blocks.items(), strict=True):
        _block(part, run, pair, here, losses)
    handles = _legend()
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
    return figure


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    line: Any = {"color": "black", "linewidth": 1.6, "marker": "o", "markerfacecolor": "white"}
    return [Line2D([], [], **line, label=DRAWN), Patch(color=BAND, label=BANDED)]


def _block(
    part: SubFigure, run: Run, pair: Pair, here: pd.DataFrame, losses: pd.Index[str]
) -> None:
    """The panels of a model and task, below what they are of."""
    order = [metric.name for metric in judged_metrics(pair[1])]
    metrics = [name for name in order if (here["metric"] == name).any()]
    losses_here, other = [*map(str, here["loss"].sort_values().unique())], reference_of(run)
    rows = sorted(losses_here, key=lambda loss: loss == other)  # the noise floor last
    names = {loss: noise_label(run) if loss == other else loss_label(loss) for loss in rows}
    axes = part.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    part.suptitle(textwrap.fill(_heading(run, pair, here), 100), x=0.01, ha="left", fontsize=9.5)
    for axis, name in zip(axes, metrics, strict=True):
        _panel(axis, run, here[here["metric"] == name], rows, losses)
    labels = [folded(shortened(names[loss], 24), 18) for loss in rows]
    axes[0].set_yticks(range(len(rows)), labels)
    axes[0].set_ylim(len(rows) - 0.5, -0.5)


def _heading(run: Run, pair: Pair, here: pd.DataFrame) -> str:
    """Model, task, test examples and seeds."""
    seeds = sorted({*here.loc[here["loss"] != reference_of(run), "seeds"]})
    several = f", {' or '.join(map(str, seeds))} seed{'s' * (seeds != [1])}"
    if "predictions" in run.manifest:
        several = ""
    return f"{pair_name(pair)}: {here['n'].max():,} test examples{several}"


def _panel(
    axis: Axes, run: Run, here: pd.DataFrame, rows: list[str], losses: pd.Index[str]
) -> None:
    """The rows of one metric, below the value that they are compared with."""
    first = here.iloc[0]
    styles = style.loss_styles(losses)
    reference = reference_of(run)  # as published: tuned losses are compared with it tuned
    other = shortened(loss_label(reference), LETTERS)
    known = run.metrics
    known = known[(known["metric"] == first["metric"]) & (known["loss"] == reference)]
    against = known["address"].isin({address for row in here["against"] for address in row})
    value = number(float(known.loc[against, "value"].mean()), digits_of(first["label"]))
    stop = "\n" if len(other) > SHORT else " "
    axis.set_title(f"{first['label']},{stop}{other} {value}", loc="left")
    bound = _bound(here)
    axis.set_xlim((bound, -bound) if first["better"] == "lower" else (-bound, bound))
    axis.axvline(0, color="black", linewidth=0.9)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    for gain in here.to_dict("records"):
        _row(axis, rows.index(gain["loss"]), gain, styles[gain["loss"]], bound)
    axis.set_xlabel(f"Δ {first['label']} to {other}:{stop}right is better →")


def _bound(here: pd.DataFrame) -> float:
    """Half the width of an axis: all differences, bands and intervals, or what is of use of them.

    With two seeds a band can be many times as wide as all differences together.
    """
    useful = max(
        _gains.WIDEST * float(here["difference"].abs().max()), ROOM * float(here["smallest"].min())
    )
    ends = here[["difference", "low", "high", "smallest"]].abs().to_numpy(dtype=float)
    widest = float(np.max(ends, initial=0.0, where=np.isfinite(ends)))
    return 1.06 * (min(widest, useful) if math.isfinite(useful) else widest) or 1.0


def _row(axis: Axes, at: int, gain: dict[Any, Any], how: style.LossStyle, bound: float) -> None:
    """What could not be told, the difference with its interval, and the verdict in words."""
    if math.isfinite(gain["smallest"]):
        band = min(gain["smallest"], bound)
        axis.barh(at, 2 * band, left=-band, height=0.72, color=BAND, zorder=0)
    ends = np.clip([gain["low"], gain["high"]], -bound, bound)
    if math.isfinite(gain["low"]):
        axis.plot(ends, [at, at], color=how.colour, linewidth=1.8, solid_capstyle="butt")
        arrows = "><" if axis.xaxis_inverted() else "<>"
        for end, value, arrow in zip(ends, (gain["low"], gain["high"]), arrows, strict=True):
            marker = "|" if end == value else arrow
            axis.plot(end, at, marker, color=how.colour, markersize=7, clip_on=False)
    filled = how.colour if gain["interval"] == OVER_SEEDS else "white"
    axis.plot(gain["difference"], at, **how.plotted(6, markerfacecolor=filled))
    verdict = str(gain["verdict"]).partition(" (")[0]
    digits = digits_of(gain["label"])
    values = with_interval(gain["difference"], gain["low"], gain["high"], digits, sign=True)
    place: Any = {"transform": axis.get_yaxis_transform(), "clip_on": False}
    colour = COLOURS.get(verdict, "black")
    axis.text(1.03, at - 0.04, verdict, va="bottom", weight="bold", color=colour, **place)
    p = "" if pd.isna(gain["p_holm"]) else f", p {p_value(gain['p_holm'])}"
    axis.text(1.03, at + 0.04, f"{values}{p}", va="top", fontsize=8, **place)
