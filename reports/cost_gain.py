"""Cost against gain: the time of a training step beside the difference to cross-entropy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import (
    LossStyle,
    add_legend,
    loss_label,
    loss_styles,
    model_label,
)
from smmd_bench.publishing.tables import DASH, with_interval

from ._cells import REFERENCE, in_order, missing_note, why_missing
from ._columns import row_table
from ._gains import INTERVALS, gains, reference_of, seed_gains, why_no_gain
from ._main_losses import main_losses
from ._panels import Pair, of_pair, pairs, panel_grid, select_panels
from ._sample import sample_note
from .forest_plot import window

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WARM_UP = 0.05
"""The share of a training's first steps that is left out."""
GROUPS, LOSSES = 6, 12
"""Panels, and losses in each, drawn at most; table and CSV have all."""
KEY = ["model", "task", "loss"]
COST = ["ratio", "ratio_low", "ratio_high"]
RATIO = "Step time : CE"


@dataclass(frozen=True)
class CostGain:
    """What each loss costs in training time, and what it gives for it."""

    name: ClassVar[str] = "cost_gain"
    title: ClassVar[str] = "Cost against gain"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: Run) -> str | None:
        """Results and training logs of a loss and of cross-entropy are needed."""
        if (reason := why_no_gain(run)) is not None:
            return reason
        if reference_of(run) != REFERENCE:
            return "the completions were made elsewhere: nothing was trained here"
        known = set(gains(seed_gains(run))[KEY].itertuples(index=False, name=None))
        if not any(tuple(row[key] for key in KEY) in known for row in _costs(run)):
            return "no loss and cross-entropy have logged step times for the same seed"
        return None

    def build(self, run: Run) -> Artefact:
        """One panel a model and task, one point a loss."""
        run, left = main_losses(run)
        data = gains(seed_gains(run)).merge(step_costs(run), on=KEY)
        table = row_table(_rows(run, data), self.title)
        caption = (
            "Across: the wall time of an optimiser step over that of the same step (seed and "
            "number) of cross-entropy in this run, the median; bars: its middle half. "
            f"The first {WARM_UP:.0%} of the steps are left out. The trainings ran one after the "
            "other: where a machine does other work as well, these ratios say more of that work "
            "than of the loss; `smmd-bench overhead` measures step times side by side. Up: the "
            "difference of the task's first metric to cross-entropy; higher in the panel is "
            f"better. {INTERVALS} A bar may go on beyond the panel. {sample_note(run, run.cells)}"
        )
        drawn, left_out = select_panels(data, GROUPS, LOSSES)
        caption += left_out + left + missing_note(run.cells)
        return Artefact(caption, table, _figure(drawn, data), data)


def step_costs(run: Run) -> pd.DataFrame:
    """One row a model, task and loss: ratio, ratio_low, ratio_high, steps.

    The ratio of its step times to those of cross-entropy, paired by seed and step: the median and
    the quartiles; `steps` is how many pairs there are.
    """
    rows = list(_costs(run))
    return in_order(pd.DataFrame(rows), run.cells) if rows else pd.DataFrame(columns=KEY)


def _costs(run: Run) -> Iterator[dict[str, Any]]:
    """The rows of `step_costs`; the logs of a model and task are read when it is their turn."""
    for (model, task), cells in run.cells.groupby(["model", "task"], observed=True):
        log = run.read("train_log", ["step", "seconds"], cells["address"])
        if "seconds" not in log:
            continue
        log = log[log["step"] > WARM_UP * log.groupby("address")["step"].transform("max")]
        steps = log.groupby(["seed", "step", "loss"], observed=True)["seconds"].first().unstack()
        if REFERENCE not in steps:
            continue
        ratios = steps.astype("float64").div(steps[REFERENCE], axis=0)
        for loss in ratios.columns.drop(REFERENCE):
            paired = ratios.loc[np.isfinite(ratios[loss]), loss]
            if len(paired):
                low, middle, high = paired.quantile([0.25, 0.5, 0.75])
                row = {"model": model, "task": task, "loss": loss, "steps": len(paired)}
                yield {**row, "ratio": middle, "ratio_low": low, "ratio_high": high}


def _rows(run: Run, data: pd.DataFrame) -> Iterator[dict[str, str]]:
    """The rows of the table; a loss that has no result has the reason in place."""
    cells = run.cells[~run.cells["loss"].isin(["base", REFERENCE])]
    for pair in pairs(data):
        found = {row["loss"]: row for row in of_pair(data, pair).to_dict("records")}
        for loss, there in of_pair(cells, pair).groupby("loss", observed=True):
            head = {"Model": model_label(pair[0]), "Task": pair[1], "Loss": loss_label(str(loss))}
            if loss not in found:
                yield {**head, RATIO: why_missing(there) or DASH}
                continue
            row = found[loss]
            gain = with_interval(row["difference"], row["low"], row["high"], sign=True)
            yield {
                **head,
                RATIO: with_interval(row["ratio"], row["ratio_low"], row["ratio_high"]),
                "Steps": f"{row['steps']:,}",
                "Metric": str(row["label"]),
                "Δ to CE": gain,
                "Seeds": str(row["seeds"]),
                "n": f"{row['n']:,}",
            }


def _figure(drawn: dict[Pair, list[str]], data: pd.DataFrame) -> Figure:
    figure, axes = panel_grid(drawn, 3.0)
    styles = loss_styles([REFERENCE, *data["loss"].cat.categories])
    for axis, (pair, losses) in zip(axes.flat, drawn.items(), strict=False):
        here = of_pair(data, pair)
        _panel(axis, here[here["loss"].isin(losses)], styles)
    add_legend(figure)
    return figure


def _panel(axis: Axes, data: pd.DataFrame, styles: dict[str, LossStyle]) -> None:
    axis.axhline(0, color="black", linewidth=0.9)
    axis.axvline(1, color="black", linewidth=0.9)
    point: dict[str, Any] = {"linestyle": "none", "zorder": 3}
    axis.plot(1, 0, **styles[REFERENCE].plotted(label=loss_label(REFERENCE), **point))
    for row in data.to_dict("records"):
        style, x, y = styles[str(row["loss"])], row["ratio"], row["difference"]
        axis.plot([row["ratio_low"], row["ratio_high"]], [y, y], color=style.colour, alpha=0.7)
        axis.plot([x, x], [row["low"], row["high"]], color=style.colour, alpha=0.7)
        filled = style.colour if row["seeds"] > 1 else "white"
        label = loss_label(str(row["loss"]))
        axis.plot(x, y, **style.plotted(7, label=label, markerfacecolor=filled, **point))
    first = data.iloc[0]
    lower = first["better"] == "lower"
    ends = window(data, data)
    axis.set_ylim(*(reversed(ends) if lower else ends))
    axis.set_xlabel(RATIO)
    axis.set_ylabel(f"Δ {first['label']} to CE{', reversed axis' if lower else ''}")
