"""Every loss against cross-entropy, over tasks and models: differences with 95% intervals."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

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
from smmd_bench.publishing.tables import DASH, with_interval

from ._cells import missing_note, why_missing
from ._gains import (
    INTERVALS,
    OVER_SEEDS,
    FirstMetric,
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
        tasks, left = _that_fit(blocks)
        models = [str(model) for model in run.cells["model"].cat.categories]
        models = [model for model in models if (seeds["model"] == model).any()]
        table = _table(run, gains(seeds), blocks)
        table.attrs["title"] = self.title
        other = loss_label(reference_of(run))
        caption = (
            f"Difference of each task's first metric to {other} on the same test examples and "
            "seed; to the right of the line is better. Markers: the difference, over several "
            f"seeds their mean; faint dots: each seed. {INTERVALS} An arrow: the interval goes on "
            "beyond the panel."
        )
        caption += f" {sample_note(run, run.cells)}"
        if any(metric is not None and metric.better == "lower" for metric in blocks_metrics(tasks)):
            caption += " Where lower is better the axis is reversed."
        if len(models) > MODELS:
            caption += f" Not drawn: {', '.join(model_label(m) for m in models[MODELS:])}."
        if left:
            caption += f" Not drawn for lack of room: {', '.join(left)}."
        caption += unknown_note(run) + left_out + missing_note(run.cells)
        drawn = {task: blocks[task] for task in tasks}
        return Artefact(caption, table, _figure(run, seeds, drawn, models[:MODELS]), seeds)


def blocks_metrics(tasks: list[str]) -> list[FirstMetric | None]:
    """The first metric of each task."""
    return [first_metric(task) for task in tasks]


def _blocks(run: Run, seeds: pd.DataFrame) -> dict[str, list[str]]:
    """The tasks with a difference, and the losses that the run has of each, in its order."""
    cells = run.cells[~run.cells["loss"].isin(["base", reference_of(run)])]
    found = {}
    for task in run.cells["task"].cat.categories:
        if (seeds["task"] == task).any():
            have = set(cells.loc[cells["task"] == task, "loss"])
            found[str(task)] = [str(x) for x in cells["loss"].cat.categories if x in have]
    return found


def _that_fit(blocks: dict[str, list[str]]) -> tuple[list[str], list[str]]:
    """The tasks that fit below each other, the first in any case; and the others."""
    fit: list[str] = []
    for task in blocks:
        if not fit or sum(len(blocks[t]) for t in [*fit, task]) <= ROWS:
            fit.append(task)
    return fit, [task for task in blocks if task not in fit]


def _status(cells: pd.DataFrame, model: str, task: str, loss: str) -> str:
    """What stands where a loss has no difference."""
    here = (cells["model"] == model) & (cells["task"] == task) & (cells["loss"] == loss)
    if not here.any():
        return "not run"
    return why_missing(cells[here]) or "no cross-entropy to compare with"


def _table(run: Run, found: pd.DataFrame, blocks: dict[str, list[str]]) -> pd.DataFrame:
    heading = f"Δ to {loss_label(reference_of(run))}"
    rows = []
    for task, losses in blocks.items():
        metric = first_metric(task)
        assert metric is not None
        for model in run.cells["model"].cat.categories:
            here = found[(found["task"] == task) & (found["model"] == model)].set_index("loss")
            for loss in losses if len(here) else ():
                row = {"Model": model_label(str(model)), "Task": task, "Metric": metric.label}
                row |= {"Loss": loss_label(loss)}
                if loss in here.index:
                    g = here.loc[loss]
                    row[heading] = with_interval(g["difference"], g["low"], g["high"], sign=True)
                    row |= {"Interval": g["interval"], "Seeds": str(g["seeds"]), "n": f"{g['n']:,}"}
                else:
                    row[heading] = _status(run.cells, str(model), task, loss)
                rows.append(row)
    table = pd.DataFrame(rows).fillna(DASH)
    return table.drop(columns=[c for c in ("Model", "Task") if table[c].nunique() == 1])


def _figure(
    run: Run, seeds: pd.DataFrame, blocks: dict[str, list[str]], models: list[str]
) -> Figure:
    """One row of panels a task: a panel for each of the models that the run has of it."""
    heights = [0.85 + 0.24 * len(losses) for losses in blocks.values()]
    known = set(zip(run.cells["task"], run.cells["model"], strict=True))
    of_task = {task: [model for model in models if (task, model) in known] for task in blocks}
    columns = max(1, *(len(found) for found in of_task.values()))
    longest = max(len(loss_label(loss)) for losses in blocks.values() for loss in losses)
    width = NARROW if columns == 1 and longest <= SHORT else WIDTH
    figure = new_figure(width, 0.2 + sum(heights))
    axes = figure.subplots(
        len(blocks), columns, sharex="row", sharey="row", squeeze=False,
        gridspec_kw={"height_ratios": heights},
    )  # fmt: skip
    styles = loss_styles(run.cells["loss"].cat.categories)
    for row, (task, losses) in zip(axes, blocks.items(), strict=True):
        metric = first_metric(task)
        assert metric is not None
        found = seeds[(seeds["task"] == task) & seeds["model"].isin(models)]
        limits = (-1.0, 1.0) if found.empty else window(found, gains(found))
        for axis in row[len(of_task[task]) :]:
            axis.set_visible(False)
        for axis, model in zip(row, of_task[task], strict=False):
            axis.set_xlim(*(limits if metric.better == "higher" else reversed(limits)))
            axis.axvline(0, color="black", linewidth=0.9)
            here = found[found["model"] == model]
            for at, loss in enumerate(losses):
                of_loss = here[here["loss"] == loss]
                if of_loss.empty:
                    text = _status(run.cells, model, task, loss)
                    axis.text(
                        0.99, at, text, transform=axis.get_yaxis_transform(), color=GREY,
                        ha="right", va="center", fontsize=8, style="italic",
                    )  # fmt: skip
                else:
                    _row(axis, at, of_loss, styles[loss], limits)
            axis.grid(axis="y", visible=False)
            for at in range(1, len(losses), 2):
                axis.axhspan(at - 0.5, at + 0.5, color="#F4F4F4", zorder=0)
            axis.set_title(folded(f"{model_label(model)}, {task}", int(8.4 * width / columns)))
            reversed_note = ", reversed axis" if metric.better == "lower" else ""
            axis.set_xlabel(
                f"Δ {metric.label} to {loss_label(reference_of(run))}{reversed_note}: "
                "right is better →"
            )
        row[0].set_ylim(len(losses) - 0.5, -0.5)
        labels = [textwrap.shorten(loss_label(x), 44, placeholder="…") for x in losses]
        row[0].set_yticks(range(len(losses)), labels, fontsize=8.5)
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


def _row(
    axis: Axes, at: int, seeds: pd.DataFrame, style: LossStyle, limits: tuple[float, float]
) -> None:
    gain = gains(seeds).iloc[0]
    over_seeds = gain["interval"] == OVER_SEEDS
    if over_seeds:
        values = seeds["difference"]
        axis.plot(
            values, np.full(len(values), at + 0.27), "o", color=style.colour, alpha=0.4,
            markersize=2.8, markeredgewidth=0,
        )  # fmt: skip
    if math.isfinite(gain["low"]):
        _interval(axis, at, (gain["low"], gain["high"]), style, limits)
    axis.plot(
        gain["difference"], at, style.marker, color=style.colour,
        markersize=8 if style.marker == "*" else 5.5,
        markerfacecolor=style.colour if over_seeds else "white",
    )  # fmt: skip


def _interval(
    axis: Axes,
    at: int,
    bounds: tuple[float, float],
    style: LossStyle,
    limits: tuple[float, float],
) -> None:
    """The interval as far as the axis goes, with an arrow where it goes on."""
    arrows = "><" if axis.xaxis_inverted() else "<>"
    ends = max(bounds[0], limits[0]), min(bounds[1], limits[1])
    axis.plot(ends, [at, at], color=style.colour, linewidth=1.4, solid_capstyle="butt")
    for end, bound, arrow in zip(ends, bounds, arrows, strict=True):
        marker = "|" if end == bound else arrow
        axis.plot(end, at, marker, color=style.colour, markersize=6, clip_on=False)
