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

from ._cells import Pair, in_order, main_losses, metrics_of, of_pair
from ._panels import LIMITS, pair_title, plain_ticks, say, select_panels
from ._text import caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPAN = 10
"""Curves are smoothed by an exponential mean whose span is this part of the steps."""
POINTS = 250
"""Steps kept of each cell's curve, evenly spaced, after smoothing."""
GROUPS, LOSSES = 4, 8
"""Models and tasks, as many as fit on a printed page, and losses of each; the CSV has all."""
CURVES = {"cross_entropy": "Cross-entropy", "auxiliary": "Auxiliary (unweighted)"}
SHOWN = (
    "Cross-entropy over all tokens, the auxiliary of each loss on its own scale, and the "
    "validation score by epoch, where a ring marks each epoch that a seed selected. Curves by "
    f"step are smoothed by an exponential mean with a span of 1/{SPAN} of the steps; faint behind "
    "those of one seed: the values of each step. Lines of several seeds: their mean; bands: "
    f"smallest to largest. {LIMITS}"
)

Losses = dict[str, pd.DataFrame]
"""The rows of each loss, of all its seeds."""


@dataclass(frozen=True)
class TrainingCurves:
    """How the losses fall, and how validation rises, for every loss, with a band over its seeds."""

    name: ClassVar[str] = "training_curves"
    title: ClassVar[str] = "Training curves"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: Run) -> str | None:
        """Without a training log there is nothing to draw."""
        return "no cell has a training log" if run.having("train_log").empty else None

    def build(self, run: Run) -> Artefact:
        """One row of panels a model and task."""
        run = main_losses(run)
        logs = [run.read("train_log", ["step", *CURVES], [at]) for at in run.cells["address"]]
        data = pd.concat([smoothed(log) for log in logs if len(log)], ignore_index=True)
        data = in_order(data, run.cells)
        figure = _figure(data, run.selection, select_panels(data, GROUPS, LOSSES))
        return Artefact(caption(run, run.cells, SHOWN), figure=figure, data=data)


def smoothed(log: pd.DataFrame) -> pd.DataFrame:
    """A cell's curves, smoothed, then thinned: the raw value stays beside each smoothed one."""
    log = log.sort_values("step", ignore_index=True)
    for name in CURVES:
        raw = log[name].astype("float64")
        log[f"{name}_smoothed"] = raw.ewm(span=max(1, len(log) / SPAN)).mean().where(raw.notna())
    kept = np.unique(np.linspace(0, len(log) - 1, min(POINTS, len(log))).astype(int))
    return log.iloc[kept]


def _figure(data: pd.DataFrame, selection: pd.DataFrame, drawn: dict[Pair, list[str]]) -> Figure:
    figure = new_figure(WIDTH, 0.5 + 2.5 * len(drawn))
    axes = figure.subplots(len(drawn), 3, squeeze=False)
    styles = loss_styles(data["loss"].cat.categories)
    for (pair, losses), row in zip(drawn.items(), axes, strict=True):
        steps, epochs = (_by_loss(of_pair(frame, pair), losses) for frame in (data, selection))
        for axis, (name, label) in zip(row, CURVES.items(), strict=False):
            axis.set(title=label, xlabel="Optimiser step")
            _by_step(axis, steps, name, styles)
        row[2].set(title="Validation score", xlabel="Epoch")
        _by_epoch(row[2], epochs, styles, pair[1])
        row[0].set_ylabel(pair_title(pair))
    add_legend(figure)
    return figure


def _by_loss(data: pd.DataFrame, losses: list[str]) -> Losses:
    """The rows of each loss that has any, in the order of the losses, which is the legend's."""
    groups = {loss: data[data["loss"] == loss] for loss in losses}
    return {loss: rows for loss, rows in groups.items() if len(rows)}


def over_seeds(rows: pd.DataFrame, along: str, name: str) -> pd.DataFrame:
    """The mean, min and max of the seeds of one loss by step or epoch, interpolated within a seed.

    Thinned logs of different lengths have different steps.
    """
    wide = rows.pivot_table(index=along, columns="seed", values=name)
    wide = wide.interpolate("index", limit_area="inside")
    return wide.agg(["mean", "min", "max"], axis=1)


def _line(axis: Axes, curve: pd.DataFrame, seeds: int, how: LossStyle, **more: Any) -> None:
    """The mean over seeds, and where there are several the band of their ends."""
    axis.plot(curve.index, curve["mean"], **how.plotted(**more))
    if seeds > 1:
        ends = curve["min"], curve["max"]
        axis.fill_between(curve.index, *ends, color=how.colour, alpha=0.16, linewidth=0)


def _by_step(axis: Axes, losses: Losses, name: str, styles: dict[str, LossStyle]) -> None:
    logged = {loss: rows[rows[name].notna()] for loss, rows in losses.items()}
    logged = {loss: rows for loss, rows in logged.items() if len(rows)}
    for loss, rows in logged.items():
        seeds = rows["seed"].nunique()
        if seeds == 1:
            faint: Any = {"color": styles[loss].colour, "alpha": 0.18, "linewidth": 0.7}
            axis.plot(rows["step"], rows[name], **faint)
        curve = over_seeds(rows, "step", f"{name}_smoothed")
        every = (len(curve) // 10, max(1, len(curve) // 5))
        _line(axis, curve, seeds, styles[loss], markevery=every, label=loss_label(loss), zorder=3)
    if not logged:
        say(axis, "no loss here has one")
    elif all((rows[f"{name}_smoothed"] > 0).all() for rows in logged.values()):
        axis.set_yscale("log")
        plain_ticks(axis)


def _by_epoch(axis: Axes, losses: Losses, styles: dict[str, LossStyle], task: str) -> None:
    if not losses:
        say(axis, "no checkpoint is scored yet")
        return
    metric = str(next(iter(losses.values()))["selection_metric"].iloc[0])
    axis.set_title(
        f"Validation {({m.name: m.label for m in metrics_of(task)}).get(metric, metric)}"
    )
    for loss, rows in losses.items():
        curve = over_seeds(rows, "epoch", metric)
        _line(axis, curve, rows["seed"].nunique(), styles[loss], size=4, label=loss_label(loss))
        best = curve.loc[rows.loc[rows["selected"], "epoch"].unique(), "mean"]
        ring: Any = {"markersize": 11, "fillstyle": "none", "color": styles[loss].colour}
        axis.plot(best.index, best, "o", **ring)
    epochs = sorted({epoch for rows in losses.values() for epoch in rows["epoch"]})
    if len(epochs) <= 8:
        axis.set_xticks(epochs)
