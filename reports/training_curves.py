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
from smmd_bench.results.verdict import in_order, main_losses

from ._cells import Pair, metric_labels, of_pair
from ._panels import LIMITS, pair_name, say, select_panels
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
    f"validation score by epoch (rings: selected epochs). Curves are smoothed over 1/{SPAN} of the "
    f"steps; lines of several seeds are their mean, bands their range. {LIMITS}"
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
        labels = metric_labels(pair[1])
        metric = str(next(iter(epochs["selection_metric"]), "score"))
        for loss in losses:
            for axis, name in zip(row, CURVES, strict=False):
                _line(axis, log[log["loss"] == loss], "step", f"{name}_smoothed", styles[loss])
            _line(row[2], epochs[epochs["loss"] == loss], "epoch", metric, styles[loss])
        for axis, title in zip(row, CURVES.values(), strict=False):
            axis.set(title=title, xlabel="Optimiser step")
            if not axis.lines:
                say(axis, "no loss here has one")
            elif all((np.asarray(line.get_ydata(), float) > 0).all() for line in axis.lines):
                axis.set_yscale("log")
        row[2].set(title=f"Validation {labels.get(metric, metric)}", xlabel="Epoch")
        if not row[2].lines:
            say(row[2], "no checkpoint is scored yet")
        row[0].set_ylabel(pair_name(pair).replace(", ", "\n", 1))
    add_legend(figure)
    return figure


def _line(axis: Axes, rows: pd.DataFrame, along: str, name: str, how: LossStyle) -> None:
    """The mean over seeds, and where there are several the band of their ends."""
    rows = rows[rows[name].notna()] if len(rows) else rows
    if rows.empty:
        return
    curve = rows.groupby(along)[name].agg(["mean", "min", "max"])
    label = loss_label(str(rows["loss"].iloc[0]))
    every = max(1, len(curve) // 5) if along == "step" else 1
    axis.plot(curve.index, curve["mean"], **how.plotted(4, label=label, markevery=every))
    band: Any = {"color": how.colour, "alpha": 0.16, "linewidth": 0}
    axis.fill_between(curve.index, curve["min"], curve["max"], **band)
    if along == "epoch":
        best = curve.loc[rows.loc[rows["selected"], along].unique(), "mean"]
        ring: Any = {"markersize": 11, "fillstyle": "none", "color": how.colour}
        axis.plot(best.index, best, "o", **ring)
