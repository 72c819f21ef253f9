"""How a training went: validation by epoch, cross-entropy and auxiliary by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, ReportSkippedError, Run
from smmd_bench.publishing.style import (
    WIDTH,
    LossStyle,
    add_legend,
    folded,
    loss_label,
    loss_styles,
    new_figure,
)
from smmd_bench.results.pairing import (
    drop_short_variants,
    find_metrics,
    label_metric,
    order_losses,
)

from ._panels import name_pair, select_panels, stack_parts
from ._results import Pair, select_pair, select_rows
from ._text import make_artefact

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPAN = 10
"""Curves are smoothed by an exponential mean whose span is this part of the steps."""
POINTS = 250
"""Steps of each cell that are drawn, evenly spaced; the CSV has these, too."""
PAIRS, LOSSES = 4, 8
"""Models and tasks, as many as fit on a printed page, and losses of each; the CSV has all."""
CURVES = {"cross_entropy": "Cross-entropy", "weighted": "λ × auxiliary"}
SHOWN = (
    "Left: the validation metric that selects an epoch; a ring marks the selected one of each "
    "seed. Middle and right: cross-entropy over all target tokens, and the weighted auxiliary "
    f"beside it, smoothed over 1/{SPAN} of the steps. Thin lines are seeds, thick ones their mean. "
    "The first models, tasks and losses are drawn; the CSV has all."
)


@dataclass(frozen=True)
class TrainingCurves:
    """How validation rises and the objective falls, for every loss and seed."""

    name = "training_curves"
    title = "Training curves"
    paper = "not in the paper"
    order = 20

    def build(self, run: Run) -> Artefact:
        """A row of three panels a model and task."""
        run = drop_short_variants(run)
        columns = ["step", "cross_entropy", "relative_auxiliary"]
        logs = _select_trained(run).read("train_log", columns)
        if logs.empty:
            raise ReportSkippedError("no cell has a training log")
        curves = [_smooth(log) for _, log in logs.groupby("address", sort=False)]
        data = order_losses(pd.concat(curves, ignore_index=True), run.cells)

        drawn = select_panels(data, PAIRS, LOSSES)
        figure = _draw(data, run.selection, drawn)
        trained = run.cells[run.cells["address"].isin(data["address"])]
        return make_artefact(run, trained, SHOWN, figure=figure, data=data)


def _select_trained(run: Run) -> Run:
    """The cells that were trained: a test of transfer has the curves of another task."""
    is_trained = run.cells["trained_on"].isna()
    return run.only(run.cells[is_trained])


def _smooth(log: pd.DataFrame) -> pd.DataFrame:
    """The smoothed curves of a cell, thinned to `POINTS` steps."""
    log = log.sort_values("step", ignore_index=True)
    log["weighted"] = log["relative_auxiliary"] * log["cross_entropy"]
    log = log.drop(columns="relative_auxiliary")
    span = max(1.0, len(log) / SPAN)
    for name in CURVES:
        raw = log[name].astype("float64")
        smooth = raw.ewm(span=span).mean()
        # A step without a numeric token has no auxiliary, and its gap stays.
        log[name] = smooth.where(raw.notna())

    count = min(POINTS, len(log))
    last = len(log) - 1
    rows = np.linspace(0, last, count).astype(int)
    kept = np.unique(rows)
    return log.iloc[kept]


def _draw(
    data: pd.DataFrame, selection: pd.DataFrame, drawn: dict[Pair, list[str]]
) -> Figure:
    heights = [2.6] * len(drawn)
    figure = new_figure(WIDTH, 0.5 + sum(heights))
    styles = loss_styles(data["loss"].cat.categories)
    parts = stack_parts(figure, heights)
    for (pair, losses), part in zip(drawn.items(), parts, strict=True):
        part.suptitle(folded(name_pair(pair), 100), fontsize=10)
        validation, *by_step = part.subplots(1, 1 + len(CURVES))
        _draw_validation(validation, select_pair(selection, pair), losses, styles)

        steps = select_pair(data, pair)
        for axis, (column, title) in zip(by_step, CURVES.items(), strict=True):
            for loss in losses:
                rows = select_rows(steps, loss=loss).dropna(subset=column)
                _draw_curves(axis, rows, "step", column, loss, styles[loss])
            axis.set(title=title, xlabel="Optimiser step")
            _set_scale(axis)
    add_legend(figure)
    return figure


def _draw_validation(
    axis: Axes, epochs: pd.DataFrame, losses: list[str], styles: dict[str, LossStyle]
) -> None:
    if epochs.empty:
        axis.set(title="Validation")
        axis.text(0.5, 0.5, "not decoded yet", ha="center", transform=axis.transAxes)
        return

    metric = str(epochs["selection_metric"].iloc[0])
    for loss in losses:
        rows = select_rows(epochs, loss=loss).dropna(subset=metric)
        style = styles[loss]
        _draw_curves(axis, rows, "epoch", metric, loss, style)
        chosen = rows[rows["selected"].astype(bool)]
        axis.plot(
            chosen["epoch"],
            chosen[metric],
            "o",
            color=style.colour,
            markersize=9,
            fillstyle="none",
        )

    task = str(epochs["task"].iloc[0])
    axis.set(title=f"Validation {label_metric(task, metric)}", xlabel="Epoch")
    # Wild answers of an early epoch would leave the later ones no height.
    errors = {item.name for item in find_metrics(task) if item.better == "lower"}
    if metric in errors and axis.lines:
        _set_scale(axis, 30)
    # Between two epochs there is nothing.
    axis.set_xticks(sorted({*epochs["epoch"].astype(int)}))


def _draw_curves(
    axis: Axes, rows: pd.DataFrame, along: str, column: str, loss: str, look: LossStyle
) -> None:
    """A thin line for each seed, and a thick one with markers for their mean."""
    if rows.empty:
        return
    if rows["seed"].nunique() > 1:
        for _, of_seed in rows.groupby("seed"):
            thin: dict[str, Any] = {
                "color": look.colour,
                "linewidth": 0.6,
                "alpha": 0.4,
            }
            axis.plot(of_seed[along], of_seed[column], **thin)

    mean = rows.groupby(along)[column].mean()
    every = max(1, len(mean) // 6)
    plotted = look.plotted(4, label=loss_label(loss), markevery=every)
    axis.plot(mean.index, mean, **plotted)


def _set_scale(axis: Axes, factor: float = 10) -> None:
    """Use a logarithmic axis where positive values span more than this factor: a loss falls so."""
    values = [np.asarray(line.get_ydata(), float) for line in axis.lines]
    if not values:
        label = "no loss here has one"
        axis.text(0.5, 0.5, label, ha="center", transform=axis.transAxes)
        return
    every_value = np.concatenate(values)
    lowest = every_value.min()
    if lowest > 0 and every_value.max() > factor * lowest:
        axis.set_yscale("log")
