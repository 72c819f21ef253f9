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
from smmd_bench.publishing.style import (
    GREY,
    NARROW,
    WIDTH,
    LossStyle,
    folded,
    loss_label,
    loss_styles,
    model_label,
    new_figure,
)
from smmd_bench.publishing.tables import with_interval

from ._cells import missing_note, why_missing
from ._columns import row_table
from ._gains import (
    INTERVALS,
    OVER_SEEDS,
    first_metric,
    gains,
    reference_of,
    seed_gains,
    unknown_note,
    why_no_gain,
)
from ._main_losses import main_losses
from ._sample import sample_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODELS, ROWS = 3, 48
"""Columns and rows (losses over all tasks) drawn at most; the table has all."""
SHORT = 14
"""Letters of a loss that leave room for its row in one column of a page."""
WIDEST = 3.0
"""How far the axis goes at most, in units of the largest difference of one seed."""


@dataclass(frozen=True)
class ForestPlot:
    """The gain of every loss over cross-entropy, one row a loss, one block a task and model."""

    name: ClassVar[str] = "forest_plot"
    title: ClassVar[str] = "Every loss against cross-entropy"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: Run) -> str | None:
        """A loss with results beside cross-entropy's is needed."""
        return why_no_gain(run)

    def build(self, run: Run) -> Artefact:
        """One row of panels a task, one column a model."""
        run, left_out = main_losses(run)
        seeds = seed_gains(run)
        blocks = _blocks(run, seeds)
        drawn = _that_fit(blocks)
        models = [str(x) for x in run.cells["model"].cat.categories if (seeds["model"] == x).any()]
        other = loss_label(reference_of(run))
        caption = (
            f"Difference of each task's first metric to {other} on the same test examples and "
            "seed; to the right of the line is better. Markers: the difference, over several "
            f"seeds their mean; faint dots: each seed. {INTERVALS} An arrow: the interval goes on "
            f"beyond the panel. {sample_note(run, run.cells)}"
        )
        if (seeds.loc[seeds["task"].isin(drawn), "better"] == "lower").any():
            caption += " Where lower is better the axis is reversed."
        if len(models) > MODELS:
            caption += f" Not drawn: {', '.join(model_label(m) for m in models[MODELS:])}."
        if left := [task for task in blocks if task not in drawn]:
            caption += f" Not drawn for lack of room: {', '.join(left)}."
        caption += unknown_note(run) + left_out + missing_note(run.cells)
        table = row_table(_rows(run, gains(seeds), blocks), self.title)
        return Artefact(caption, table, _figure(run, seeds, drawn, models[:MODELS]), seeds)


def _blocks(run: Run, seeds: pd.DataFrame) -> dict[str, list[str]]:
    """The tasks with a difference, and the losses that the run has of each, in its order."""
    cells = run.cells[~run.cells["loss"].isin(["base", reference_of(run)])]
    found = {}
    for task in run.cells["task"].cat.categories:
        if (seeds["task"] == task).any():
            have = set(cells.loc[cells["task"] == task, "loss"])
            found[str(task)] = [str(x) for x in cells["loss"].cat.categories if x in have]
    return found


def _that_fit(blocks: dict[str, list[str]]) -> dict[str, list[str]]:
    """The tasks that fit below each other, the first in any case."""
    fit: dict[str, list[str]] = {}
    for task, losses in blocks.items():
        if not fit or sum(map(len, fit.values())) + len(losses) <= ROWS:
            fit[task] = losses
    return fit


def _status(cells: pd.DataFrame, model: str, task: str, loss: str) -> str:
    """What stands where a loss has no difference."""
    here = (cells["model"] == model) & (cells["task"] == task) & (cells["loss"] == loss)
    if not here.any():
        return "not run"
    return why_missing(cells[here]) or "no cross-entropy to compare with"


def _rows(run: Run, found: pd.DataFrame, blocks: dict[str, list[str]]) -> Iterator[dict[str, str]]:
    """The rows of the table: a task, model and loss each."""
    heading = f"Δ to {loss_label(reference_of(run))}"
    for task, losses in blocks.items():
        of_task = found[found["task"] == task]
        for model in map(str, of_task["model"].unique()):
            here = of_task[of_task["model"] == model]
            known = {str(gain["loss"]): gain for gain in here.to_dict("records")}
            head = {"Model": model_label(model), "Task": task, "Metric": here["label"].iloc[0]}
            for loss in losses:
                row = {**head, "Loss": loss_label(loss)}
                if loss in known:
                    gain = known[loss]
                    ends = gain["low"], gain["high"]
                    row[heading] = with_interval(gain["difference"], *ends, sign=True)
                    row |= {"Interval": gain["interval"], "Seeds": str(gain["seeds"])}
                    row |= {"n": f"{gain['n']:,}"}
                else:
                    row[heading] = _status(run.cells, model, task, loss)
                yield row


def _figure(
    run: Run, seeds: pd.DataFrame, blocks: dict[str, list[str]], models: list[str]
) -> Figure:
    """One row of panels a task: a panel for each of the models that the run has of it."""
    known = set(zip(run.cells["task"], run.cells["model"], strict=True))
    of_task = {task: [model for model in models if (task, model) in known] for task in blocks}
    columns = max(1, *map(len, of_task.values()))
    heights = [0.85 + 0.24 * len(losses) for losses in blocks.values()]
    longest = max(len(loss_label(loss)) for losses in blocks.values() for loss in losses)
    width = NARROW if columns == 1 and longest <= SHORT else WIDTH
    figure = new_figure(width, 0.2 + sum(heights))
    shared: dict[str, Any] = {
        "sharex": "row",
        "sharey": "row",
        "squeeze": False,
        "height_ratios": heights,
    }
    axes = figure.subplots(len(blocks), columns, **shared)
    for row, (task, losses) in zip(axes, blocks.items(), strict=True):
        found = seeds[(seeds["task"] == task) & seeds["model"].isin(models)]
        better = found["better"].iloc[0] if len(found) else "higher"
        limits = window(found, gains(found)) if len(found) else (-1.0, 1.0)
        row[0].set_xlim(*(limits if better == "higher" else reversed(limits)))
        for axis in row[len(of_task[task]) :]:
            axis.set_visible(False)
        for axis, model in zip(row, of_task[task], strict=False):
            _panel(axis, run, found[found["model"] == model], (model, task), losses)
            axis.set_title(folded(f"{model_label(model)}, {task}", int(8.4 * width / columns)))
        labels = [textwrap.shorten(loss_label(x), 44, placeholder="…") for x in losses]
        row[0].set_yticks(range(len(losses)), labels, fontsize=8.5)
        row[0].set_ylim(len(losses) - 0.5, -0.5)
    return figure


def window(seeds: pd.DataFrame, found: pd.DataFrame) -> tuple[float, float]:
    """The ends of the axis: all of the seeds and of the intervals, but no more than `WIDEST`.

    The t interval of two seeds can be many times as wide as all differences together.
    """
    bound = WIDEST * float(seeds["difference"].abs().max()) or 1.0
    values = np.concatenate([[0.0], seeds["difference"], found["low"], found["high"]])
    inside = np.clip(values[np.isfinite(values)], -bound, bound)
    margin = 0.06 * float(np.ptp(inside)) or 1.0
    return float(inside.min()) - margin, float(inside.max()) + margin


def _panel(
    axis: Axes, run: Run, seeds: pd.DataFrame, pair: tuple[str, str], losses: list[str]
) -> None:
    """The differences of the losses of a model and task, one below another."""
    metric = first_metric(pair[1])
    assert metric is not None
    styles = loss_styles(run.cells["loss"].cat.categories)
    axis.axvline(0, color="black", linewidth=0.9)
    axis.grid(axis="y", visible=False)
    for at, loss in enumerate(losses):
        of_loss = seeds[seeds["loss"] == loss]
        if at % 2:
            axis.axhspan(at - 0.5, at + 0.5, color="#F4F4F4", zorder=0)
        if len(of_loss):
            _row(axis, at, of_loss, styles[loss])
            continue
        text: dict[str, Any] = {
            "color": GREY,
            "ha": "right",
            "va": "center",
            "fontsize": 8,
            "style": "italic",
        }
        status = _status(run.cells, *pair, loss)
        axis.text(0.99, at, status, transform=axis.get_yaxis_transform(), **text)
    reversed_note = ", reversed axis" if metric.better == "lower" else ""
    other = loss_label(reference_of(run))
    axis.set_xlabel(f"Δ {metric.label} to {other}{reversed_note}: right is better →")


def _row(axis: Axes, at: int, seeds: pd.DataFrame, style: LossStyle) -> None:
    """The mean with its interval, as far as the axis goes, and each of several seeds."""
    gain = gains(seeds).iloc[0]
    filled = style.colour if gain["interval"] == OVER_SEEDS else "white"
    if len(seeds) > 1:
        faint: dict[str, Any] = {
            "color": style.colour,
            "alpha": 0.4,
            "markersize": 2.8,
            "markeredgewidth": 0,
        }
        axis.plot(seeds["difference"], np.full(len(seeds), at + 0.27), "o", **faint)
    if math.isfinite(gain["low"]):
        limits, bounds = sorted(axis.get_xlim()), (gain["low"], gain["high"])
        ends = max(bounds[0], limits[0]), min(bounds[1], limits[1])
        axis.plot(ends, [at, at], color=style.colour, linewidth=1.4, solid_capstyle="butt")
        arrows = "><" if axis.xaxis_inverted() else "<>"
        for end, bound, arrow in zip(ends, bounds, arrows, strict=True):
            marker = "|" if end == bound else arrow
            axis.plot(end, at, marker, color=style.colour, markersize=6, clip_on=False)
    axis.plot(gain["difference"], at, **style.plotted(markerfacecolor=filled))
