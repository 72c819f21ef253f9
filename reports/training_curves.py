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
        log, epochs = of_pair(data, pair), of_pair(selection, pair)
        labels = {metric.name: metric.label for metric in metrics_of(pair[1])}
        metric = str(next(iter(epochs["selection_metric"]), "score"))
        for loss in losses:
            own = log[log["loss"] == loss]
            for axis, name in zip(row, CURVES, strict=False):
                _by_step(axis, own[own[name].notna()], name, styles[loss])
            _by_epoch(row[2], epochs[epochs["loss"] == loss], metric, styles[loss])
        for axis, title in zip(row, CURVES.values(), strict=False):
            axis.set(title=title, xlabel="Optimiser step")
            _scale(axis, "no loss here has one")
        row[2].set(title=f"Validation {labels.get(metric, metric)}", xlabel="Epoch")
        if not row[2].lines:
            say(row[2], "no checkpoint is scored yet")
        elif epochs["epoch"].nunique() <= 8:
            row[2].set_xticks(sorted(epochs["epoch"].unique()))
        row[0].set_ylabel(pair_title(pair))
    add_legend(figure)
    return figure


def over_seeds(rows: pd.DataFrame, along: str, name: str) -> pd.DataFrame:
    """The mean, min and max of the seeds of one loss by step or epoch, interpolated within a seed.

    Thinned logs of different lengths have different steps.
    """
    wide = rows.pivot_table(index=along, columns="seed", values=name)
    wide = wide.interpolate("index", limit_area="inside")
    return wide.agg(["mean", "min", "max"], axis=1)


def _line(axis: Axes, rows: pd.DataFrame, curve: pd.DataFrame, how: LossStyle, **more: Any) -> None:
    """The mean over seeds, and where there are several the band of their ends."""
    label = loss_label(str(rows["loss"].iloc[0]))
    axis.plot(curve.index, curve["mean"], **how.plotted(label=label, zorder=3, **more))
    if rows["seed"].nunique() > 1:
        ends = curve["min"], curve["max"]
        axis.fill_between(curve.index, *ends, color=how.colour, alpha=0.16, linewidth=0)


def _by_step(axis: Axes, rows: pd.DataFrame, name: str, how: LossStyle) -> None:
    if rows.empty:
        return
    if rows["seed"].nunique() == 1:
        faint: Any = {"color": how.colour, "alpha": 0.18, "linewidth": 0.7}
        axis.plot(rows["step"], rows[name], **faint)
    curve = over_seeds(rows, "step", f"{name}_smoothed")
    _line(axis, rows, curve, how, markevery=(len(curve) // 10, max(1, len(curve) // 5)))


def _by_epoch(axis: Axes, rows: pd.DataFrame, metric: str, how: LossStyle) -> None:
    if rows.empty:
        return
    curve = over_seeds(rows, "epoch", metric)
    _line(axis, rows, curve, how, size=4)
    best = curve.loc[rows.loc[rows["selected"], "epoch"].unique(), "mean"]
    ring: Any = {"markersize": 11, "fillstyle": "none", "color": how.colour}
    axis.plot(best.index, best, "o", **ring)


def _scale(axis: Axes, missing: str) -> None:
    """A logarithmic axis where all values allow it; words where there are none."""
    if not axis.lines:
        say(axis, missing)
    elif all((np.asarray(line.get_ydata(), float) > 0).all() for line in axis.lines):
        axis.set_yscale("log")
        plain_ticks(axis)
