"""Training curves: cross-entropy and auxiliary by step, validation score by epoch."""

from __future__ import annotations

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

from ._caption import join_sentences, missing_note, split_caption, steps_note, when
from ._cells import in_order, main_losses
from ._panels import Pair, of_pair, pair_title, plain_ticks, select_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 250
"""Steps kept of each cell's curve, evenly spaced, after smoothing."""
GROUPS, LOSSES = 12, 8
"""Models and tasks, and losses of each, drawn at most; the CSV has all."""
CURVES = {"cross_entropy": "Cross-entropy", "auxiliary": "Auxiliary (unweighted)"}
NAMES = {"exact_match": "exact match (%)", "rougeL": "ROUGE-L"}

Cells = list[tuple[str, pd.DataFrame]]
"""The loss and the rows of each cell."""


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
        run, left = main_losses(run)
        curves = [
            _curve(run.read("train_log", ["step", *CURVES], [address]))
            for address in run.cells["address"]
        ]
        data = pd.concat([curve for curve in curves if not curve.empty], ignore_index=True)
        data = in_order(data, run.cells)
        drawn, left_out = select_panels(data, GROUPS, LOSSES, kept="CSV")
        caption = split_caption(
            "Cross-entropy over all tokens, the auxiliary of each loss on its own scale, and the "
            "validation score by epoch, whose ring marks the selected checkpoint. Smoothed by an "
            "exponential mean over a twenty-fifth of the steps; the raw values are faint behind.",
            when(data["seed"].nunique() > 1, "One line a seed."),
            _validation_note(run.selection),
            left_out,
            left,
            more=join_sentences(steps_note(data), missing_note(run.cells)),
        )
        figure = _figure(data, run.selection, drawn)
        return Artefact(figure=figure, data=data, **caption)


def _validation_note(selection: pd.DataFrame) -> str:
    """A sentence with the number of validation examples; empty where no checkpoint is scored."""
    if selection.empty:
        return ""
    sizes = selection.groupby("task", observed=True)["n"].max().astype(int)
    each = ", ".join(f"{n:,} ({task})" for task, n in sizes.items())
    return f"n = {f'{sizes.iloc[0]:,}' if sizes.nunique() == 1 else each} validation examples."


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
        steps, epochs = (_cells(of_pair(frame, pair), losses) for frame in (data, selection))
        for axis, (name, label) in zip(row, CURVES.items(), strict=False):
            axis.set(title=label, xlabel="Optimiser step")
            _by_step(axis, steps, name, styles)
        row[2].set(title="Validation score", xlabel="Epoch")
        _by_epoch(row[2], epochs, styles)
        row[0].set_ylabel(pair_title(pair))
    add_legend(figure)
    return figure


def _cells(data: pd.DataFrame, losses: list[str]) -> Cells:
    """The rows of each cell, in the order of the losses, which is that of the legend."""
    groups = {loss: data[data["loss"] == loss].groupby("address", sort=False) for loss in losses}
    return [(loss, cell) for loss, cells in groups.items() for _, cell in cells]


def _by_step(axis: Axes, cells: Cells, name: str, styles: dict[str, LossStyle]) -> None:
    cells = [(loss, cell[cell[name].notna()]) for loss, cell in cells if cell[name].notna().any()]
    for loss, cell in cells:
        axis.plot(cell["step"], cell[name], color=styles[loss].colour, alpha=0.18, linewidth=0.7)
    for loss, cell in cells:
        every = (len(cell) // 10, max(1, len(cell) // 5))
        drawn = styles[loss].plotted(markevery=every, label=loss_label(loss))
        axis.plot(cell["step"], cell[f"{name}_smoothed"], **drawn)
    if not cells:
        axis.text(0.5, 0.5, "no loss here has one", ha="center", transform=axis.transAxes)
    elif all((cell[f"{name}_smoothed"] > 0).all() for _, cell in cells):
        axis.set_yscale("log")
        plain_ticks(axis)


def _by_epoch(axis: Axes, cells: Cells, styles: dict[str, LossStyle]) -> None:
    if not cells:
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
