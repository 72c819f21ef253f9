"""Training curves: cross-entropy and auxiliary by step, validation score by epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import (
    WIDTH,
    LossStyle,
    loss_label,
    loss_styles,
    new_figure,
)

from ._cells import missing_note
from ._figure_notes import seeds_and_steps
from ._main_losses import main_losses
from ._panels import fitted_legend, of_pair, pair_title, plain_ticks, that_fit

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
        for column in ("model", "task", "loss"):
            data[column] = pd.Categorical(data[column], categories=run.cells[column].cat.categories)
        drawn, left_out = that_fit(data, GROUPS, LOSSES, kept="CSV")
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


def _figure(
    data: pd.DataFrame, selection: pd.DataFrame, drawn: dict[tuple[str, str], list[str]]
) -> Figure:
    figure = new_figure(WIDTH, 0.5 + 2.5 * len(drawn))
    axes = figure.subplots(len(drawn), 3, squeeze=False)
    every = loss_styles(data["loss"].cat.categories)
    for (pair, losses), row in zip(drawn.items(), axes, strict=True):
        here, epochs = of_pair(data, pair), of_pair(selection, pair)
        styles = {loss: every[loss] for loss in losses}
        here = here[here["loss"].isin(losses)]
        for axis, (name, label) in zip(row, CURVES.items(), strict=False):
            _by_step(axis, here, name, styles)
            axis.set_title(label)
        _by_epoch(row[2], epochs, styles)
        row[0].set_ylabel(pair_title(pair))
    fitted_legend(figure, axes.ravel(), (loss for losses in drawn.values() for loss in losses))
    return figure


def _by_step(axis: Axes, data: pd.DataFrame, name: str, styles: dict[str, LossStyle]) -> None:
    shown = data[data[name].notna()]
    for _, style, cell in _cells(shown, styles):
        axis.plot(cell["step"], cell[name], color=style.colour, alpha=0.18, linewidth=0.7)
    for loss, style, cell in _cells(shown, styles):
        axis.plot(
            cell["step"],
            cell[f"{name}_smoothed"],
            color=style.colour,
            linestyle=style.line,
            marker=style.marker,
            markevery=(len(cell) // 10, max(1, len(cell) // 5)),
            label=loss_label(loss),
        )
    if shown.empty:
        axis.text(0.5, 0.5, "no loss here has one", ha="center", transform=axis.transAxes)
    elif (shown[f"{name}_smoothed"] > 0).all():
        axis.set_yscale("log")
        plain_ticks(axis)
    axis.set_xlabel("Optimiser step")


def _cells(
    data: pd.DataFrame, styles: dict[str, LossStyle]
) -> Iterator[tuple[str, LossStyle, pd.DataFrame]]:
    """The rows of each cell, in the order of the losses, which is that of the legend."""
    for loss, style in styles.items():
        for _, cell in data[data["loss"] == loss].groupby("address", sort=False, observed=True):
            yield loss, style, cell


def _by_epoch(axis: Axes, data: pd.DataFrame, styles: dict[str, LossStyle]) -> None:
    metric = str(data["selection_metric"].iloc[0]) if len(data) else "score"
    axis.set_title(f"Validation {NAMES.get(metric, metric.replace('_', ' '))}")
    for loss, style, cell in _cells(data, styles):
        axis.plot(
            cell["epoch"],
            cell[metric],
            color=style.colour,
            linestyle=style.line,
            marker=style.marker,
            markersize=7 if style.marker == "*" else 4,
            label=loss_label(loss),
        )
        best = cell[cell["selected"]]
        axis.plot(
            best["epoch"], best[metric], "o", markersize=11, fillstyle="none", color=style.colour
        )
    if data.empty:
        axis.text(0.5, 0.5, "no checkpoint is scored yet", ha="center", transform=axis.transAxes)
    elif data["epoch"].nunique() <= 8:
        axis.set_xticks(sorted(data["epoch"].unique()))
    axis.set_xlabel("Epoch")
