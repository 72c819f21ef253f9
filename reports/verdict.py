"""Did the loss help? The verdict as a table and as a picture, a forest of every loss.

One row a model, task, loss and metric: better, worse, or cannot tell. The home page shows the
picture of `make demo`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing import style
from smmd_bench.publishing.style import folded, loss_label, shortened
from smmd_bench.publishing.tables import DASH, number, with_interval
from smmd_bench.scoring.gain import OVER_SEEDS

from ._cells import (
    NO_RESULTS,
    Pair,
    judged_metrics,
    main_losses,
    measured,
    noise_label,
    of_pair,
    pairs,
    reference_of,
    why_missing,
)
from ._panels import pair_name
from ._results import NOTHING_LEARNT, digits_of, learnt_nothing, verdicts, why_no_gain
from ._text import NOTES, ONE_SEED, P_HOLM, caption, p_text, row_head

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

SHOWN = (
    "Differences of each task's first metric and of its error (lower is better, where both "
    "answer). Below ±x: a true difference of x is found 4 times in 5."
)


@dataclass(frozen=True)
class Verdict:
    """Each loss against cross-entropy, by the first metric of the task and by its error."""

    name: ClassVar[str] = "verdict"
    title: ClassVar[str] = "Did the loss help?"
    paper: ClassVar[str] = ""
    order: ClassVar[int] = 0

    def skip(self, run: Run) -> str | None:
        """A measured loss besides cross-entropy and the untuned model is needed."""
        if measured(run.cells).empty:
            return NO_RESULTS
        if "predictions" in run.manifest and run.comparisons.empty:
            return "a second file of predictions is needed"
        return None if len(_judged(run)) else "the run has no loss besides cross-entropy"

    def build(self, run: Run) -> Artefact:
        """A row for each loss and metric, or the reason why there is no difference."""
        run = main_losses(run)
        data, other = verdicts(run), loss_label(reference_of(run))
        table = pd.DataFrame(_table_rows(run, data)).fillna(DASH)
        if "predictions" in run.manifest:
            table.attrs["title"] = f"Which answers are better than those of {other}?"
        value, gain = _headings(run)
        table.attrs["values"] = ["Loss", "Metric", value, "Verdict", gain, P_HOLM]
        table.attrs["optional"] = ["n", "Seeds", P_HOLM, value]
        found = data[data["loss"] != reference_of(run)]
        one = "Seeds" in table and (found["seeds"] == 1).any()
        lacking = f"Nothing to compare with: {other} has no result for the same seed."
        words = caption(run, run.cells, SHOWN, lacking if found.empty else ONE_SEED * bool(one))
        return Artefact(words, table, data=None if data.empty else data, notes=NOTES)


def _judged(run: Run) -> pd.DataFrame:
    """The cells of losses that a verdict is about."""
    others = [] if "predictions" in run.manifest else ["base"]
    return run.cells[~run.cells["loss"].isin([*others, reference_of(run)])]


def _table_rows(run: Run, data: pd.DataFrame) -> Iterator[dict[str, str]]:
    """The rows of the table, in the order of the run; the noise floor is the last of its pair."""
    other, dead, judged = reference_of(run), learnt_nothing(run), {*_judged(run)["loss"]}
    found = dict([*data.groupby(["task", "model", "loss"], observed=True)])
    for _, own in run.cells.groupby(["task", "model"], observed=True):
        groups = [*own.groupby(["task", "model", "loss"], observed=True)]
        for key, cells in sorted(groups, key=lambda group: group[0][2] == other):
            if key[2] in judged or (key[2] == other and key in found):
                nothing = NOTHING_LEARNT if (key[1], key[0], key[2]) in dead else ""
                yield from _of_loss(run, cells, found.get(key, data[:0]), nothing)


def _of_loss(
    run: Run, cells: pd.DataFrame, found: pd.DataFrame, nothing: str
) -> Iterator[dict[str, str]]:
    other, (value, difference) = reference_of(run), _headings(run)
    head = row_head(cells.iloc[0])
    metrics = judged_metrics(head["Task"])
    if cells["loss"].iloc[0] == other:
        head["Loss"] = noise_label(run)
    if found.empty:
        gone = "" if metrics else "no such task is installed"
        no_reference = f"no {loss_label(other)} to compare with"
        yield {**head, "Verdict": why_missing(cells) or gone or nothing or no_reference}
        return
    for metric in metrics:
        if metric.name not in {*found["metric"]}:
            said = nothing or "no answers to compare"
            yield {**head, "Metric": metric.label, "Verdict": said}
    for gain in found.to_dict("records"):
        digits = digits_of(gain["label"])
        bounds = gain["difference"], gain["low"], gain["high"]
        seeds = {} if "predictions" in run.manifest else {"Seeds": str(gain["seeds"])}
        yield {
            **head,
            "Metric": gain["label"],
            value: number(_value_compared(run, gain), digits),
            "Verdict": gain["verdict"],
            difference: with_interval(*bounds, digits, sign=True),
            P_HOLM: p_text(gain["p_holm"]),
            **seeds,
            "n": f"{gain['n']:,}",
        }


def _headings(run: Run) -> tuple[str, str]:
    """Of the value that is compared with, and of the difference."""
    label = shortened(loss_label(reference_of(run)), 14)
    return label, f"Δ to {label} [95 %]"


def _value_compared(run: Run, gain: dict[Any, Any]) -> float:
    """The metric of the cells that a loss is compared with, mean over the seeds."""
    found = run.metrics[run.metrics["metric"] == gain["metric"]]
    return float(found.loc[found["address"].isin(gain["against"]), "value"].mean())


ROWS, MANY = 48, 16
"""Rows (losses of all models and tasks) drawn at most; of more than MANY each has the verdict alone
in words."""
WIDEST, ROOM = 3.0, 1.5
"""How far an axis goes at most, in units of the largest difference, and at least, in units of the
smallest difference that could be found."""
BAND = "#D9DCDF"
COLOURS = {"better": "#1B5E20", "worse": "#A01313"}
"""Of the words; those of the losses are others."""
BANDED = "too small to be found with a probability of 80 %"
DRAWN = "difference with 95 % interval"
PICTURED = (
    "Differences on the same test examples and seeds; right of the line is better. A band ends at "
    "the smallest true difference that the test finds 4 times in 5. Intervals cover seeds and "
    "examples (filled markers) or examples alone (open)."
)


@dataclass(frozen=True)
class Overview:
    """The verdict of each loss, with the difference and what could have been seen."""

    name: ClassVar[str] = "overview"
    title: ClassVar[str] = "Did the loss help? The verdict as a picture"
    paper: ClassVar[str] = "not in the paper"
    order: ClassVar[int] = 0

    def skip(self, run: Run) -> str | None:
        """A loss with results beside cross-entropy's is needed."""
        return why_no_gain(run)

    def build(self, run: Run) -> Artefact:
        """One row of panels a model and task: its first metric, and its error if it has one."""
        run = main_losses(run)
        data = verdicts(run)
        seeds = data.loc[data["loss"] != reference_of(run), "seeds"]
        words = caption(run, run.cells, PICTURED, ONE_SEED * bool((seeds == 1).any()))
        figure = _figure(run, data)
        return Artefact(words, figure=figure, data=data.drop(columns="against"), notes=NOTES)


def _figure(run: Run, data: pd.DataFrame) -> Figure:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    blocks = {pair: of_pair(data, pair) for pair in pairs(data)}
    counts = np.cumsum([here["loss"].nunique() for here in blocks.values()])
    shown = [*blocks.items()][: max(1, int((counts <= ROWS).sum()))]  # the first in any case
    many = counts[len(shown) - 1] > MANY
    each = 0.3 if many else 0.4
    heights = [1.1 + each * here["loss"].nunique() for _, here in shown]
    figure = style.new_figure(style.WIDTH, 0.35 + sum(heights))
    parts = figure.subfigures(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
    styles = style.loss_styles(data["loss"].cat.categories)
    for part, (pair, here) in zip(parts, shown, strict=True):
        _block(part, run, pair, here, styles, many)
    line: Any = {"color": "black", "linewidth": 1.6, "marker": "o", "markerfacecolor": "white"}
    handles = [Line2D([], [], **line, label=DRAWN), Patch(color=BAND, label=BANDED)]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8)
    return figure


def _block(
    part: SubFigure, run: Run, pair: Pair, here: pd.DataFrame, styles: Any, many: bool
) -> None:
    """The panels of a model and task, below what they are of; the noise floor is the last row."""
    metrics = [m.name for m in judged_metrics(pair[1]) if (here["metric"] == m.name).any()]
    other = reference_of(run)
    rows = sorted(here["loss"].sort_values().unique(), key=lambda loss: loss == other)
    names = [noise_label(run) if loss == other else loss_label(loss) for loss in rows]
    axes = part.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    heading = f"{pair_name(pair)}: {here['n'].max():,} test examples"
    part.suptitle(folded(heading, 100), x=0.01, ha="left", fontsize=9.5)
    for axis, name in zip(axes, metrics, strict=True):
        _panel(axis, run, here[here["metric"] == name], rows, styles, many)
    axes[0].set_yticks(range(len(rows)), [folded(shortened(name, 24), 18) for name in names])
    axes[0].set_ylim(len(rows) - 0.5, -0.5)


def _panel(
    axis: Axes, run: Run, here: pd.DataFrame, rows: list[str], styles: Any, many: bool
) -> None:
    """The rows of one metric, below the value that they are compared with."""
    gains = here.to_dict("records")
    label, lower = gains[0]["label"], gains[0]["better"] == "lower"
    other = shortened(loss_label(reference_of(run)), 14)
    stop = "\n" if len(other) > 8 else " "
    value = number(_value_compared(run, gains[0]), digits_of(label))
    axis.set_title(f"{label},{stop}{other} {value}", loc="left")
    bound = _bound(here)
    axis.set_xlim((bound, -bound) if lower else (-bound, bound))
    axis.axvline(0, color="black", linewidth=0.9)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    for gain in gains:
        _row(axis, rows.index(gain["loss"]), gain, styles[gain["loss"]], bound, many)
    axis.set_xlabel(f"Δ {label} to {other}:{stop}right is better →")


def _bound(here: pd.DataFrame) -> float:
    """Half the width of an axis: all differences, bands and intervals, or what is of use of them.

    With two seeds a band can be many times as wide as all differences together.
    """
    largest, smallest = float(here["difference"].abs().max()), float(here["smallest"].min())
    useful = max(WIDEST * largest, ROOM * smallest)
    ends = here[["difference", "low", "high", "smallest"]].abs().to_numpy(dtype=float)
    widest = float(np.max(ends, initial=0.0, where=np.isfinite(ends)))
    return 1.06 * (min(widest, useful) if math.isfinite(useful) else widest) or 1.0


def _row(
    axis: Axes, at: int, gain: dict[Any, Any], how: style.LossStyle, bound: float, many: bool
) -> None:
    """What could not be told, the difference with its interval, and the verdict in words."""
    if math.isfinite(gain["smallest"]):
        band = min(gain["smallest"], bound)
        axis.barh(at, 2 * band, left=-band, height=0.72, color=BAND, zorder=0)
    if math.isfinite(gain["low"]):
        ends = np.clip([gain["low"], gain["high"]], -bound, bound)
        axis.plot(ends, [at, at], color=how.colour, linewidth=1.8, solid_capstyle="butt")
        arrows = "><" if axis.xaxis_inverted() else "<>"
        for end, value, arrow in zip(ends, (gain["low"], gain["high"]), arrows, strict=True):
            marker = "|" if end == value else arrow
            axis.plot(end, at, marker, color=how.colour, markersize=7, clip_on=False)
    filled = how.colour if gain["interval"] == OVER_SEEDS else "white"
    axis.plot(gain["difference"], at, **how.plotted(6, markerfacecolor=filled))
    verdict = str(gain["verdict"]).partition(" (")[0]
    place: Any = {"transform": axis.get_yaxis_transform(), "clip_on": False}
    bold: Any = {"weight": "bold", "color": COLOURS.get(verdict, "black"), **place}
    if many:
        axis.text(1.03, at, verdict, va="center", fontsize=8, **bold)
        return
    bounds = gain["difference"], gain["low"], gain["high"]
    values = with_interval(*bounds, digits_of(gain["label"]), sign=True)
    axis.text(1.03, at - 0.04, verdict, va="bottom", **bold)
    said = f"{values}, p {p_text(gain['p_holm'])}"
    axis.text(1.03, at + 0.04, said, va="top", fontsize=8, **place)
