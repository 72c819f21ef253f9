"""Every loss against cross-entropy, over tasks and models: differences with 95% intervals."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing import style
from smmd_bench.publishing.style import folded, loss_label, model_label
from smmd_bench.publishing.tables import DASH, number, p_value, with_interval
from smmd_bench.scoring.gain import OVER_SEEDS

from . import _gains
from ._caption import when, write_caption
from ._cells import REFERENCE, main_losses, measured, why_missing
from ._columns import row_head, row_table
from ._gains import gains, noise_label, reference_of, seed_gains, window
from ._values import P_HOLM, delta
from ._verdicts import digits_of, judged_metrics, tested

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODELS, ROWS = 3, 48
"""Columns and rows (losses over all tasks) drawn at most; the table has all."""
SHORT = 14
"""Letters of a loss that leave room for its row in one column of a page."""

NO_REFERENCE = "no cross-entropy to compare with"

Blocks = dict[tuple[str, str], list[str]]
"""The losses of each task and metric, in the order of the run, the noise floor last."""


@dataclass(frozen=True)
class ForestPlot:
    """The gain of every loss over cross-entropy, one row a loss, one block a task and model."""

    name: ClassVar[str] = "forest_plot"
    title: ClassVar[str] = "Every loss against cross-entropy"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: Run) -> str | None:
        """A loss with results beside cross-entropy's is needed."""
        return _gains.why_no_gain(run)

    def build(self, run: Run) -> Artefact:
        """One row of panels a task, one column a model."""
        run, left = main_losses(run)
        seeds = seed_gains(run, judged_metrics)
        blocks = _blocks(run, seeds)
        fitting = np.cumsum([len(losses) for losses in blocks.values()]) <= ROWS
        drawn = dict([*blocks.items()][: max(1, fitting.sum())])  # the first in any case
        models = [*map(str, seeds["model"].cat.remove_unused_categories().cat.categories)]
        lower = seeds.loc[seeds["better"] == "lower", ["task", "metric"]]
        caption = write_caption(
            run,
            run.cells,
            "Difference of each task's first metric, and of its error, to "
            f"{loss_label(reference_of(run))} on the same test examples and seed; right of the "
            f"line is better. Faint dots: each seed. {_gains.INTERVALS} An arrow: the interval "
            "goes on beyond the panel.",
            when(
                not drawn.keys().isdisjoint(lower.itertuples(index=False, name=None)),
                "Where lower is better the axis is reversed.",
            ),
            when(
                (seeds["loss"] == reference_of(run)).any(),
                f"{noise_label(run)}: against {loss_label(reference_of(run))} of further seeds, in "
                "disjoint pairs: the noise floor.",
            ),
            _not_drawn("", [model_label(model) for model in models[MODELS:]]),
            _not_drawn(" for lack of room", _names(seeds, [b for b in blocks if b not in drawn])),
            _gains.unknown_note(run),
            left,
        )
        table = row_table(_rows(run, tested(seeds, reference_of(run)), blocks), self.title)
        figure = _figure(run, seeds, drawn, models[:MODELS])
        data = seeds.drop(columns="jackknife")
        return Artefact(table=table, figure=figure, data=data, **caption)


def _not_drawn(why: str, names: list[str]) -> str:
    return f"Not drawn{why}: {', '.join(names)}." if names else ""


def _names(seeds: pd.DataFrame, blocks: list[tuple[str, str]]) -> list[str]:
    """`MAE of gsm8k` of each task and metric."""
    labels = dict(zip(seeds["metric"], seeds["label"], strict=True))
    return [f"{labels[metric]} of {task}" for task, metric in blocks]


def _blocks(run: Run, seeds: pd.DataFrame) -> Blocks:
    """The tasks and metrics with a difference, and the losses that the run has of the task."""
    cells, other = run.cells[run.cells["loss"] != "base"], reference_of(run)
    found: Blocks = {}
    for task, metric in seeds[["task", "metric"]].drop_duplicates().itertuples(index=False):
        losses = cells.loc[cells["task"] == task, "loss"].sort_values().unique()
        noise = ((seeds["task"] == task) & (seeds["loss"] == other)).any()
        found[str(task), str(metric)] = [
            *(str(loss) for loss in losses if loss != other),
            *([other] if noise else []),
        ]
    return found


def _status(cells: pd.DataFrame, model: str, task: str, loss: str) -> str:
    """What stands where a loss has no difference."""
    here = cells[(cells["model"] == model) & (cells["task"] == task) & (cells["loss"] == loss)]
    if here.empty:
        return "not run"
    same = (cells["model"] == model) & (cells["task"] == task) & (cells["loss"] == REFERENCE)
    nothing = "no answers to compare" if len(measured(cells[same])) else NO_REFERENCE
    return why_missing(here) or nothing


def _rows(run: Run, found: pd.DataFrame, blocks: Blocks) -> Iterator[dict[str, str]]:
    """The rows of the table: a task, model, metric and loss each."""
    heading = delta(reference_of(run))
    order = ["task", "model", "metric"]
    for (task, model, metric), here in found.groupby(order, observed=True, sort=False):
        known = {gain["loss"]: gain for gain in here.to_dict("records")}
        for loss in blocks[str(task), str(metric)]:
            head = row_head({"model": model, "task": task, "loss": loss})
            row = {**head, "Metric": here["label"].iloc[0], "Loss": _name(run, str(loss))}
            if gain := known.get(loss):
                digits = digits_of(gain["label"])
                values = gain["difference"], gain["low"], gain["high"]
                row[heading] = with_interval(*values, digits, sign=True)
                row[P_HOLM] = DASH if pd.isna(gain["p_holm"]) else p_value(gain["p_holm"])
                row["Detectable"] = number(gain["smallest"], digits)
                row |= {"Interval": gain["interval"], "Seeds": str(gain["seeds"])}
                yield row | {"n": f"{gain['n']:,}"}
            else:
                yield row | {heading: _status(run.cells, str(model), str(task), loss)}


def _figure(run: Run, seeds: pd.DataFrame, blocks: Blocks, models: list[str]) -> Figure:
    """One row of panels a task and metric: a panel for each model that the run has of the task."""
    known = set(zip(run.cells["task"], run.cells["model"], strict=True))
    of_task = {task: [model for model in models if (task, model) in known] for task, _ in blocks}
    columns = max(1, *map(len, of_task.values()))
    heights = [0.85 + 0.24 * len(losses) for losses in blocks.values()]
    names = {loss: _name(run, loss) for losses in blocks.values() for loss in losses}
    longest = max(map(len, names.values()))
    width = style.NARROW if columns == 1 and longest <= SHORT else style.WIDTH
    figure = style.new_figure(width, 0.2 + sum(heights))
    shared: Any = {"sharex": "row", "sharey": "row", "height_ratios": heights}
    axes = figure.subplots(len(blocks), columns, squeeze=False, **shared)
    for row, ((task, metric), losses) in zip(axes, blocks.items(), strict=True):
        found = seeds[(seeds["task"] == task) & seeds["model"].isin(models)]
        found = found[found["metric"] == metric]
        lower = (found["better"] == "lower").any()
        limits = window(found, gains(found)) if len(found) else (-1.0, 1.0)
        row[0].set_xlim(*(reversed(limits) if lower else limits))
        note, other = ", reversed axis" * bool(lower), loss_label(reference_of(run))
        for axis in row[len(of_task[task]) :]:
            axis.set_visible(False)
        for axis, model in zip(row, of_task[task], strict=False):
            _panel(axis, run, found[found["model"] == model], (model, task), losses)
            axis.set_title(folded(f"{model_label(model)}, {task}", int(8.4 * width / columns)))
            label = found["label"].iloc[0] if len(found) else metric
            axis.set_xlabel(f"Δ {label} to {other}{note}: right is better →")
        labels = [textwrap.shorten(names[x], 44, placeholder="…") for x in losses]
        row[0].set_yticks(range(len(losses)), labels, fontsize=8.5)
        row[0].set_ylim(len(losses) - 0.5, -0.5)
    return figure


def _name(run: Run, loss: str) -> str:
    return noise_label(run) if loss == reference_of(run) else loss_label(loss)


def _panel(
    axis: Axes, run: Run, seeds: pd.DataFrame, pair: tuple[str, str], losses: list[str]
) -> None:
    """The differences of the losses of a model and task, one below another."""
    styles = style.loss_styles(run.cells["loss"].cat.categories)
    axis.axvline(0, color="black", linewidth=0.9)
    axis.grid(axis="y", visible=False)
    for at, loss in enumerate(losses):
        of_loss = seeds[seeds["loss"] == loss]
        if at % 2:
            axis.axhspan(at - 0.5, at + 0.5, color="#F4F4F4", zorder=0)
        if len(of_loss):
            _row(axis, at, of_loss, styles[loss])
        else:
            how: Any = {"ha": "right", "va": "center", "fontsize": 8, "style": "italic"}
            place = axis.get_yaxis_transform()
            text = _status(run.cells, *pair, loss)
            axis.text(0.99, at, text, color=style.GREY, transform=place, **how)


def _row(axis: Axes, at: int, seeds: pd.DataFrame, how: style.LossStyle) -> None:
    """The mean with its interval, as far as the axis goes, and each of several seeds."""
    gain = gains(seeds).iloc[0]
    filled = how.colour if gain["interval"] == OVER_SEEDS else "white"
    if len(seeds) > 1:
        faint: Any = {"alpha": 0.4, "markersize": 2.8, "markeredgewidth": 0}
        places = np.full(len(seeds), at + 0.27)
        axis.plot(seeds["difference"], places, "o", color=how.colour, **faint)
    if math.isfinite(gain["low"]):
        first, last = sorted(axis.get_xlim())
        bounds = gain["low"], gain["high"]
        ends = max(bounds[0], first), min(bounds[1], last)
        axis.plot(ends, [at, at], color=how.colour, linewidth=1.4, solid_capstyle="butt")
        arrows = "><" if axis.xaxis_inverted() else "<>"
        for end, bound, arrow in zip(ends, bounds, arrows, strict=True):
            marker = "|" if end == bound else arrow
            axis.plot(end, at, marker, color=how.colour, markersize=6, clip_on=False)
    axis.plot(gain["difference"], at, **how.plotted(markerfacecolor=filled))
