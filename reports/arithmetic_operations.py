"""Accuracy on arithmetic by the number of operations; a figure and table beyond the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import LossStyle, loss_label
from smmd_bench.publishing.tables import with_interval

from ._caption import write_caption
from ._cells import main_losses, measured
from ._columns import column_table, losses_with_columns, row_table
from ._panels import FEWEST, draw_panels, few_note, of_pair, pair_name, pairs, select_panels
from .arithmetic_table import arithmetic_cells, title_with_levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GROUP = ["model", "task", "loss", "operations"]
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
        losses, lacking = losses_with_columns(cells["loss"].cat.categories)
        table = row_table(_table(data, cells, losses), title_with_levels(self.title, cells))
        around = ", around the mean over the seeds" if data["seeds"].max() > 1 else ""
        shown = (
            "Exact match (%) by value, by the number of binary operations in the expression, n "
            f"examples each. Brackets and bars: 95 % Wilson intervals for that n{around}."
        )
        enough = data[data["n"] >= FEWEST]
        drawn, left_out = select_panels(enough, GROUPS, LOSSES, kept="CSV")
        figure = None
        if drawn:
            figure = draw_panels(enough, drawn, _draw, 2.9, "Exact match (%)", sharey=True)
            highest = max(10.0, float(enough["high"].max()))
            figure.axes[0].set_ylim(-0.03 * highest, 1.04 * highest)  # shared by all
        caption = write_caption(run, cells, shown, lacking, _few_note(data), left_out, left)
        return Artefact(table=table, figure=figure, data=data, **caption)


def accuracy_by_operations(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy over seeds with its Wilson interval: one row a model, task, loss, operations.

    Seeds answer the same examples, so that they add nothing to n: the interval is that of one
    seed's n around the mean.
    """
    from statsmodels.stats.proportion import proportion_confint

    by_seed = scores.groupby([*GROUP, "seed"], observed=True)["exact"].agg(["mean", "size"])
    data = (
        by_seed.groupby(GROUP, observed=True)
        .agg(accuracy=("mean", "mean"), n=("size", "max"), seeds=("size", "size"))
        .reset_index()
    )
    data["operations"] = data["operations"].astype("int64")
    right, n = (data["accuracy"] * data["n"]).to_numpy(), data["n"].to_numpy()
    low, high = proportion_confint(right, n, method="wilson")
    data["accuracy"] *= 100
    data["low"] = np.minimum(100 * low, data["accuracy"])
    data["high"] = np.maximum(100 * high, data["accuracy"])
    return data[[*GROUP, "accuracy", "low", "high", "n", "seeds"]]


def _few_note(data: pd.DataFrame) -> str:
    """A sentence on the numbers of operations that too few examples have."""
    few = data[data["n"] < FEWEST]
    names = []
    for pair in pairs(few):
        counts = sorted(of_pair(few, pair)["operations"].unique())
        names.append(f"operations {', '.join(map(str, counts))} ({pair_name(pair)})")
    return few_note(names)


def _table(data: pd.DataFrame, cells: pd.DataFrame, losses: list[str]) -> pd.DataFrame:
    """One row a model, task and number of operations, one column a loss of `losses`."""
    values = zip(data["accuracy"], data["low"], data["high"], strict=True)
    data = data.assign(
        column=data["loss"].map(loss_label).astype("str"),
        text=[with_interval(value, low, high, 1) for value, low, high in values],
    )
    table = column_table(data, "operations", cells, losses)
    sizes = data.groupby(["model", "task", "operations"], observed=True)["n"].max()
    table.insert(3, "n", [f"{n:,}" for n in sizes])
    table["operations"] = table["operations"].astype("str")
    return table.rename(columns={"operations": "Binary ops"})


def _draw(axis: Axes, data: pd.DataFrame, styles: dict[str, LossStyle]) -> None:
    spread = np.linspace(-0.1, 0.1, len(styles) + 2)[1:-1]
    for (loss, style), shift in zip(styles.items(), spread, strict=True):
        line = data[data["loss"] == loss]
        lengths = line["accuracy"] - line["low"], line["high"] - line["accuracy"]
        how = style.plotted(elinewidth=1, capsize=2, label=loss_label(loss))
        axis.errorbar(line["operations"] + shift, line["accuracy"], lengths, **how)
    axis.set_xticks(sorted(data["operations"].unique()))
    axis.grid(axis="x", visible=False)
    axis.set_xlabel("Number of operations")
