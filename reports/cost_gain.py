"""Cost against gain: the time of a training step beside the difference to cross-entropy."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import (
    LossStyle,
    loss_label,
    loss_styles,
    model_label,
    new_figure,
    width_for,
)
from smmd_bench.publishing.tables import DASH, with_interval

from ._cells import REFERENCE, in_order, missing_note, why_missing
from ._gains import (
    INTERVALS,
    first_metric,
    gains,
    reference_of,
    seed_gains,
    why_no_gain,
)
from ._main_losses import main_losses
from ._panels import fitted_legend, of_pair, pair_title, pairs, that_fit
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
        data = _joined(run)
        table = pd.DataFrame([row for pair in pairs(data) for row in _rows(run, data, pair)])
        table = table.fillna(DASH)
        table = table.drop(columns=[c for c in ("Model", "Task") if table[c].nunique() == 1])
        table.attrs["title"] = self.title
        caption = (
            "Across: the wall time of an optimiser step over that of the same step (seed and "
            "number) of cross-entropy in this run, the median; bars: its middle half. "
            f"The first {WARM_UP:.0%} of the steps are left out. The trainings ran one after the "
            "other: where a machine does other work as well, these ratios say more of that work "
            "than of the loss; `smmd-bench overhead` measures step times side by side. Up: the "
            "difference of the task's first metric to cross-entropy; higher in the panel is "
            f"better. {INTERVALS} A bar may go on beyond the panel. {sample_note(run, run.cells)}"
        )
        drawn, left_out = that_fit(data, GROUPS, LOSSES)
        caption += left_out + left + missing_note(run.cells)
        return Artefact(caption, table, _figure(drawn, data), data)


def step_costs(run: Run) -> pd.DataFrame:
    """One row a model, task and loss: ratio, ratio_low, ratio_high, steps.

    The ratio of its step times to those of cross-entropy, paired by seed and step: the median and
    the quartiles; `steps` is how many pairs there are.
    """
    rows = list(_costs(run))
    if not rows:
        return pd.DataFrame(columns=[*KEY, *COST, "steps"])
    return in_order(pd.DataFrame(rows), run.cells)


def _costs(run: Run) -> Iterator[dict[str, Any]]:
    """The rows of `step_costs`; the logs of a model and task are read when it is their turn."""
    for (model, task), cells in run.cells.groupby(["model", "task"], observed=True):
        seconds = _seconds(run, cells["address"])
        reference = {
            int(cell["seed"]): seconds[str(cell["address"])]
            for cell in cells[cells["loss"] == REFERENCE].to_dict("records")
            if str(cell["address"]) in seconds
        }
        for loss, own in cells[~cells["loss"].isin(["base", REFERENCE])].groupby(
            "loss", observed=True
        ):
            ratios = []
            for cell in own.to_dict("records"):
                address, seed = str(cell["address"]), int(cell["seed"])
                if address in seconds and seed in reference:
                    ratio = seconds[address] / reference[seed]
                    ratios.append(ratio[np.isfinite(ratio)])
            paired = np.concatenate(ratios) if ratios else np.empty(0)
            if len(paired):
                low, middle, high = np.quantile(paired, [0.25, 0.5, 0.75])
                row = {"model": model, "task": task, "loss": loss, "steps": len(paired)}
                yield {**row, "ratio": middle, "ratio_low": low, "ratio_high": high}


def _seconds(run: Run, addresses: Iterable[str]) -> dict[str, pd.Series[float]]:
    """The seconds of the steps after the first ones, by step, of each cell that logged them."""
    log = run.read("train_log", ["step", "seconds"], addresses)
    if "seconds" not in log:
        return {}
    found = {}
    for address, of_cell in log.groupby("address", observed=True):
        seconds = of_cell.drop_duplicates("step").set_index("step")["seconds"].astype("float64")
        found[str(address)] = seconds[seconds.index > WARM_UP * seconds.index.max()]
    return found


def _joined(run: Run) -> pd.DataFrame:
    """The gains with the costs beside them, of the losses that have both."""
    return gains(seed_gains(run)).merge(step_costs(run), on=KEY)


def _rows(run: Run, data: pd.DataFrame, pair: tuple[str, str]) -> list[dict[str, str]]:
    """The rows of a model and task; a loss that has no result has the reason in place."""
    found = {row["loss"]: row for row in of_pair(data, pair).to_dict("records")}
    there = of_pair(run.cells, pair)
    there = there[~there["loss"].isin(["base", REFERENCE])]
    head = {"Model": model_label(pair[0]), "Task": pair[1]}
    return [
        {**head, **_row(found[loss])}
        if loss in found
        else {**head, "Loss": loss_label(str(loss)), RATIO: why_missing(cells) or DASH}
        for loss, cells in there.groupby("loss", observed=True)
    ]


def _row(row: dict[Hashable, Any]) -> dict[str, str]:
    cost = row["ratio"], row["ratio_low"], row["ratio_high"]
    gain = row["difference"], row["low"], row["high"]
    return {
        "Loss": loss_label(str(row["loss"])),
        RATIO: with_interval(*cost),
        "Steps": f"{row['steps']:,}",
        "Metric": str(row["label"]),
        "Δ to CE": with_interval(*gain, sign=True),
        "Seeds": str(row["seeds"]),
        "n": f"{row['n']:,}",
    }


def _figure(drawn: dict[tuple[str, str], list[str]], data: pd.DataFrame) -> Figure:
    columns = min(3, len(drawn))
    rows = math.ceil(len(drawn) / columns)
    figure = new_figure(width_for(columns), 0.8 + 3.0 * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    styles = loss_styles(data["loss"].cat.categories)
    for axis, (pair, losses) in zip(axes, drawn.items(), strict=False):
        here = of_pair(data, pair)
        _panel(axis, here[here["loss"].isin(losses)], styles)
        axis.set_title(pair_title(pair))
    for axis in axes[len(drawn) :]:
        axis.set_axis_off()
    fitted_legend(figure, axes, (loss for losses in drawn.values() for loss in losses))
    return figure


def _panel(axis: Axes, data: pd.DataFrame, styles: dict[str, LossStyle]) -> None:
    metric = first_metric(str(data["task"].iloc[0]))
    assert metric is not None
    for line in (axis.axhline(0), axis.axvline(1)):
        line.set(color="black", linewidth=0.9)
    ce = styles[REFERENCE]
    axis.plot(
        1, 0, ce.marker, color=ce.colour, label=loss_label(REFERENCE), linestyle="none", zorder=3
    )
    for row in data.to_dict("records"):
        style, x, y = styles[str(row["loss"])], row["ratio"], row["difference"]
        axis.plot([row["ratio_low"], row["ratio_high"]], [y, y], color=style.colour, alpha=0.7)
        axis.plot([x, x], [row["low"], row["high"]], color=style.colour, linestyle="-", alpha=0.7)
        axis.plot(
            x, y, style.marker, color=style.colour, linestyle="none",
            markersize=10 if style.marker == "*" else 7, label=loss_label(str(row["loss"])),
            markerfacecolor=style.colour if row["seeds"] > 1 else "white", zorder=3,
        )  # fmt: skip
    reversed_note = ", reversed axis" if metric.better == "lower" else ""
    ends = window(data, data)
    axis.set_ylim(*(ends if metric.better == "higher" else reversed(ends)))
    axis.set_xlabel(RATIO)
    axis.set_ylabel(f"Δ {metric.label} to CE{reversed_note}")
