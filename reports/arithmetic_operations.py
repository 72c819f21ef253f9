"""Accuracy on arithmetic by the number of operations; a figure and table beyond the paper's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

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
from smmd_bench.publishing.tables import with_interval

from ._arithmetic import arithmetic_cells, title_with_levels
from ._cells import measured, missing_note
from ._columns import hole, that_have_columns
from ._main_losses import main_losses
from ._panels import fitted_legend, of_pair, pair_title, pairs, that_fit
from ._sample import sample_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GROUP = ["model", "task", "loss", "operations"]
INTERVAL = ["accuracy", "low", "high"]
PANELS_A_ROW = 3
GROUPS, LOSSES = 12, 8
"""Models and levels, and losses of each, drawn at most; the CSV has all."""


@dataclass(frozen=True)
class ArithmeticOperations:
    """Exact match by number of operations, with Wilson intervals, for every loss."""

    name: ClassVar[str] = "arithmetic_operations"
    title: ClassVar[str] = "Arithmetic accuracy by number of operations"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: Run) -> str | None:
        """The test examples must say how many operations they have."""
        cells = measured(arithmetic_cells(run))
        if cells.empty:
            return "no arithmetic cell has results"
        first = run.read("scores", ["operations"], cells["address"].iloc[:1])
        return None if "operations" in first.columns else "the examples do not count operations"

    def build(self, run: Run) -> Artefact:
        """One panel a model and level, one line a loss."""
        run, left = main_losses(run.only(arithmetic_cells(run)))
        cells = run.cells
        scores = run.read("scores", ["exact", "operations"], measured(cells)["address"])
        data = accuracy_by_operations(scores)
        losses, lacking = that_have_columns(cells["loss"].cat.categories)
        table = _table(data, cells, losses)
        table.attrs["title"] = title_with_levels(self.title, cells)
        several = int(data["seeds"].max()) > 1
        caption = (
            "Exact match (%) by value, by the number of binary operations in the expression, n "
            "examples each. Brackets and bars: 95 % Wilson intervals for that n"
            f"{', around the mean over the seeds' if several else ''}. "
        )
        drawn, left_out = that_fit(data, GROUPS, LOSSES, kept="CSV")
        caption += sample_note(run, cells) + lacking + left_out + left + missing_note(cells)
        return Artefact(caption, table, _figure(data, drawn), data)


def accuracy_by_operations(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy over seeds with its Wilson interval: one row a model, task, loss, operations.

    Seeds answer the same examples, so that they add nothing to n: the interval is that of one
    seed's n around the mean.
    """
    from statsmodels.stats.proportion import proportion_confint

    a_seed = scores.groupby([*GROUP, "seed"], observed=True)["exact"].agg(["mean", "size"])
    data = (
        a_seed.groupby(GROUP, observed=True)
        .agg(accuracy=("mean", "mean"), n=("size", "max"), seeds=("size", "size"))
        .reset_index()
    )
    data["operations"] = data["operations"].astype("int64")
    low, high = proportion_confint(
        (data["accuracy"] * data["n"]).to_numpy(), data["n"].to_numpy(), method="wilson"
    )
    data["accuracy"] *= 100
    data["low"] = np.minimum(100 * low, data["accuracy"])
    data["high"] = np.maximum(100 * high, data["accuracy"])
    return data[[*GROUP, "accuracy", "low", "high", "n", "seeds"]]


def _table(data: pd.DataFrame, cells: pd.DataFrame, losses: list[str]) -> pd.DataFrame:
    """One row a model, task and number of operations, one column a loss of `losses`."""
    blocks = []
    for pair in pairs(data):
        group, there = of_pair(data, pair), of_pair(cells, pair)
        sizes = group.groupby("operations")["n"].max()
        block = pd.DataFrame({"Binary ops": sizes.index.astype("str"), "n": sizes.to_numpy()})
        block["n"] = [f"{n:,}" for n in block["n"]]
        block.insert(0, "Task", pair[1])
        block.insert(0, "Model", model_label(pair[0]))
        for loss in losses:
            found = group[group["loss"] == loss].set_index("operations").reindex(sizes.index)
            texts = [with_interval(a, low, high, 1) for a, low, high in found[INTERVAL].to_numpy()]
            block[loss_label(loss)] = hole(there, loss, len(block)) or texts
        blocks.append(block)
    table = pd.concat(blocks, ignore_index=True)
    return table.drop(columns=[c for c in ("Model", "Task") if table[c].nunique() == 1])


def _figure(data: pd.DataFrame, drawn: dict[tuple[str, str], list[str]]) -> Figure:
    groups = [(pair, of_pair(data, pair)) for pair in drawn]
    columns = min(PANELS_A_ROW, len(groups))
    rows = math.ceil(len(groups) / columns)
    figure = new_figure(width_for(columns), 0.4 + 2.9 * rows)
    axes = np.atleast_1d(figure.subplots(rows, columns, sharey=True, squeeze=False)).ravel()
    styles = loss_styles(data["loss"].cat.categories)
    for axis, ((model, task), group) in zip(axes, groups, strict=False):
        _panel(axis, group, {loss: styles[loss] for loss in drawn[model, task]})
        axis.set_title(pair_title((model, task)))
    highest = max(10.0, float(data["high"].max()))
    axes[0].set_ylim(-0.03 * highest, 1.04 * highest)  # shared by all
    for at, axis in enumerate(axes):
        axis.set_visible(at < len(groups))
        if at % columns == 0:
            axis.set_ylabel("Exact match (%)")
    fitted_legend(figure, axes, {loss for losses in drawn.values() for loss in losses})
    return figure


def _panel(axis: Axes, data: pd.DataFrame, styles: dict[str, LossStyle]) -> None:
    losses = [loss for loss in styles if (data["loss"] == loss).any()]
    spread = np.linspace(-0.06, 0.06, len(losses)) if len(losses) > 1 else np.zeros(1)
    for loss, shift in zip(losses, spread, strict=True):
        line, style = data[data["loss"] == loss], styles[loss]
        axis.errorbar(
            line["operations"] + shift,
            line["accuracy"],
            yerr=[line["accuracy"] - line["low"], line["high"] - line["accuracy"]],
            color=style.colour,
            linestyle=style.line,
            marker=style.marker,
            markersize=8 if style.marker == "*" else 5,
            elinewidth=1,
            capsize=2,
            label=loss_label(loss),
        )
    axis.set_xticks(sorted(data["operations"].unique()))
    axis.grid(axis="x", visible=False)
    axis.set_xlabel("Number of operations")
