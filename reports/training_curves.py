"""Training curves: cross-entropy and auxiliary by step, validation score by epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import (
    WIDTH,
    LossStyle,
    add_legend,
    loss_label,
    loss_styles,
    new_figure,
)

from ._cells import in_order, missing_note
from ._figure_notes import seeds_and_steps
from ._main_losses import main_losses
from ._panels import Pair, of_pair, pair_title, plain_ticks, select_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 250
"""Steps kept of each cell's curve, evenly spaced, after smoothing."""
GROUPS, LOSSES = 12, 8
"""Models and tasks, and losses of each, drawn at most; the CSV has all."""
CELL = ["address", "model", "task", "loss", "seed"]
CURVES = {"cross_entropy": "Cross-entropy", "auxiliary": "Auxiliary (unweighted)"}
NAMES = {"exact_match": "exact match (%)", "rougeL": "ROUGE-L"}


@dataclass(frozen=True)
class TrainingCurves:
    """How the losses fall, and how validation rises, for every loss and seed."""

    name: ClassVar[str] = "training_curves"
    title: ClassVar[str] = "Training curves"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: Run) -> str | None:
        """Without a training log there is nothing to draw."""
        return "no cell has a training log" if run.having("train_log").empty else None

    def build(self, run: Run) -> Artefact:
        """One row of panels a model and task."""
        run, left_to_ablations = main_losses(run)
        curves = [
            _curve(run.read("train_log", ["step", *CURVES], [address]))
            for address in run.cells["address"]
        ]
        data = pd.concat([curve for curve in curves if not curve.empty], ignore_index=True)
        data = in_order(data, run.cells)
        drawn, left_out = select_panels(data, GROUPS, LOSSES, kept="CSV")
        figure = _figure(data, run.selection, drawn)
        caption = (
            "Smoothed by an exponential mean over a twenty-fifth of the steps; the raw values are "
            "faint behind. Cross-entropy is the full one for every loss; auxiliaries have their "
            "own scales. Right: validation score of the checkpoint of each epoch; a ring marks "
            "the selected one."
        )
        caption += " One line a seed." if data["seed"].nunique() > 1 else ""
        caption += seeds_and_steps(data) + _validation_note(run.selection)
        caption += left_out + left_to_ablations + missing_note(run.cells)
        return Artefact(caption, figure=figure, data=data)


def _validation_note(selection: pd.DataFrame) -> str:
    """A sentence with the number of validation examples; empty where no checkpoint is scored."""
    if selection.empty:
        return ""
    sizes = selection.groupby("task", observed=True)["n"].max().astype(int)
    if sizes.nunique() == 1:
        return f" n = {sizes.iloc[0]:,} validation examples."
    each = ", ".join(f"{n:,} ({task})" for task, n in sizes.items())
    return f" n = {each} validation examples."


def _curve(log: pd.DataFrame) -> pd.DataFrame:
    """A cell's curves, smoothed, then thinned: the raw value stays beside each smoothed one."""
    if log.empty:
        return log
    log = log.sort_values("step", ignore_index=True)
    for name in CURVES:
        raw = log[name].astype("float64")
        log[f"{name}_smoothed"] = raw.ewm(span=max(10, len(log) / 25)).mean().where(raw.notna())
    kept = np.unique(np.linspace(0, len(log) - 1, min(POINTS, len(log))).astype(int))
    return log.iloc[kept]


def _figure(data: pd.DataFrame, selection: pd.DataFrame, drawn: dict[Pair, list[str]]) -> Figure:
    figure = new_figure(WIDTH, 0.5 + 2.5 * len(drawn))
    axes = figure.subplots(len(drawn), 3, squeeze=False)
    styles = loss_styles(data["loss"].cat.categories)
    for (pair, losses), row in zip(drawn.items(), axes, strict=True):
        steps, epochs = of_pair(data, pair), of_pair(selection, pair)
        for axis, (name, label) in zip(row, CURVES.items(), strict=False):
            axis.set_title(label)
            _by_step(axis, list(_cells(steps, losses)), name, styles)
        _by_epoch(row[2], list(_cells(epochs, losses)), styles)
        row[0].set_ylabel(pair_title(pair))
    add_legend(figure)
    return figure


def _cells(data: pd.DataFrame, losses: list[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each cell, in the order of the losses, which is that of the legend."""
    for loss in losses:
        of_loss = data[data["loss"] == loss]
        yield from ((loss, cell) for _, cell in of_loss.groupby("address", sort=False))


def _by_step(
    axis: Axes, cells: list[tuple[str, pd.DataFrame]], name: str, styles: dict[str, LossStyle]
) -> None:
    axis.set_xlabel("Optimiser step")
    cells = [(loss, cell[cell[name].notna()]) for loss, cell in cells if cell[name].notna().any()]
    if not cells:
        axis.text(0.5, 0.5, "no loss here has one", ha="center", transform=axis.transAxes)
        return
    for loss, cell in cells:
        axis.plot(cell["step"], cell[name], color=styles[loss].colour, alpha=0.18, linewidth=0.7)
    for loss, cell in cells:
        every = (len(cell) // 10, max(1, len(cell) // 5))
        drawn = styles[loss].plotted(markevery=every, label=loss_label(loss))
        axis.plot(cell["step"], cell[f"{name}_smoothed"], **drawn)
    if all((cell[f"{name}_smoothed"] > 0).all() for _, cell in cells):
        axis.set_yscale("log")
        plain_ticks(axis)


def _by_epoch(
    axis: Axes, cells: list[tuple[str, pd.DataFrame]], styles: dict[str, LossStyle]
) -> None:
    axis.set_xlabel("Epoch")
    if not cells:
        axis.set_title("Validation score")
        axis.text(0.5, 0.5, "no checkpoint is scored yet", ha="center", transform=axis.transAxes)
        return
    metric = str(cells[0][1]["selection_metric"].iloc[0])
    axis.set_title(f"Validation {NAMES.get(metric, metric.replace('_', ' '))}")
    for loss, cell in cells:
        style, best = styles[loss], cell[cell["selected"]]
        axis.plot(cell["epoch"], cell[metric], **style.plotted(4, label=loss_label(loss)))
        ring: dict[str, Any] = {"markersize": 11, "fillstyle": "none", "color": style.colour}
        axis.plot(best["epoch"], best[metric], "o", **ring)
    epochs = sorted({epoch for _, cell in cells for epoch in cell["epoch"]})
    if len(epochs) <= 8:
        axis.set_xticks(epochs)
