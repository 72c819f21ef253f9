"""How large the auxiliary of each loss is beside cross-entropy, by training step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import add_legend, loss_label, loss_styles, model_label
from smmd_bench.publishing.tables import number

from ._cells import REFERENCE, in_order
from ._columns import row_table
from ._figure_notes import seeds_and_steps
from ._main_losses import main_losses
from ._panels import Pair, of_pair, panel_grid, plain_ticks, select_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRETCHES = 40
"""Stretches of a training, of each of which a median is drawn."""
GROUPS, LOSSES = 6, 8
"""Panels, and losses in each, drawn at most; table and CSV have all."""
RATIO = "relative_auxiliary"
KEY = ["model", "task", "loss"]


@dataclass(frozen=True)
class AuxiliaryMagnitude:
    """The weighted auxiliary over cross-entropy: does one of the two drown the other?"""

    name: ClassVar[str] = "auxiliary_magnitude"
    title: ClassVar[str] = "Auxiliary beside cross-entropy"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: Run) -> str | None:
        """A training log of a loss with an auxiliary is needed."""
        if run.having("train_log").empty:
            return "no cell has a training log"
        logs = (run.read("train_log", [RATIO], [address]) for address in run.cells["address"])
        if any(log[RATIO].notna().any() for log in logs if RATIO in log):
            return None
        return "no training log has an auxiliary beside cross-entropy"

    def build(self, run: Run) -> Artefact:
        """One panel a model and task, one line a loss."""
        run, left_to_ablations = main_losses(run)
        data = magnitudes(run)
        drawn, left_out = select_panels(data, GROUPS, LOSSES)
        table = row_table(_rows(data), self.title)
        caption = (
            "Lambda times the auxiliary over the cross-entropy of the same optimiser step (for a "
            "loss that replaces cross-entropy at numeric positions: what stands in its place, "
            "weighted by the share of these positions). Both are means of the whole step. At 1 "
            f"(line) they weigh the same. Drawn is the median of each {STRETCHES}th of the "
            "training, the mean over seeds; band: the smallest and largest of the seeds."
        )
        caption += seeds_and_steps(data)
        if (data["ratio"] <= 0).any():
            named = data.loc[data["ratio"] <= 0, "loss"].unique()
            caption += (
                " A logarithmic axis shows nothing at or below 0, where the auxiliary of "
                f"{', '.join(loss_label(str(loss)) for loss in named)} is at times."
            )
        caption += left_out + left_to_ablations + _without_log(run, data)
        return Artefact(caption, table, _figure(data, drawn), data)


def magnitudes(run: Run) -> pd.DataFrame:
    """One row a cell and stretch of its training: step (the last of it), part (0 to 1), ratio.

    `ratio` is the median of the steps that have an auxiliary.
    """
    parts = []
    for cell in run.cells.to_dict("records"):
        log = run.read("train_log", ["step", RATIO], [str(cell["address"])])
        if log.empty or RATIO not in log:
            continue
        steps = log["step"].to_numpy(np.float64)
        stretch = np.ceil(steps / steps.max() * STRETCHES).clip(1)
        ratio = log[RATIO].astype("float64")
        found = ratio.groupby(stretch).median()
        part = pd.DataFrame({"part": found.index / STRETCHES, "ratio": found.to_numpy()})
        part["step"] = log.groupby(stretch)["step"].max().to_numpy()
        identity = {name: cell[name] for name in ("model", "task", "loss", "seed")}
        parts.append(part[part["ratio"].notna()].assign(**identity))
    columns = [*KEY, "seed", "step", "part", "ratio"]
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=columns)
    return in_order(pd.concat(parts, ignore_index=True)[columns], run.cells)


def _without_log(run: Run, data: pd.DataFrame) -> str:
    """A sentence on the trained losses without an auxiliary in a log; empty where all have one."""
    known = set(data[KEY].itertuples(index=False, name=None))
    lost = []
    for key, cells in run.cells.groupby(KEY, observed=True):
        model, task, loss = map(str, key)
        if loss not in ("base", REFERENCE) and (model, task, loss) not in known:
            states = " and ".join(cells["status"].unique())
            lost.append(f"{loss_label(loss)} ({model_label(model)} on {task}, {states})")
    return f" Without an auxiliary in a training log: {'; '.join(lost)}." if lost else ""


def _rows(data: pd.DataFrame) -> Iterator[dict[str, str]]:
    tenths = {"First tenth": (0, 0.1), "Last tenth": (0.9, 1), "Whole training": (0, 1)}
    for (model, task, loss), group in data.groupby(KEY, observed=True):
        row = {"Model": model_label(str(model)), "Task": str(task), "Loss": loss_label(str(loss))}
        for name, ends in tenths.items():
            inside = group[group["part"].between(*ends, inclusive="right")]
            row[name] = number(float(inside.groupby("seed")["ratio"].median().mean()), 3)
        yield {**row, "Seeds": str(group["seed"].nunique())}


def _figure(data: pd.DataFrame, drawn: dict[Pair, list[str]]) -> Figure:
    figure, axes = panel_grid(drawn, 2.8, sharey=True)
    styles = loss_styles(data["loss"].cat.categories)
    for axis, (pair, losses) in zip(axes.flat, drawn.items(), strict=False):
        here = of_pair(data[data["ratio"] > 0], pair)
        axis.axhline(1, color="black", linewidth=0.9)
        for loss in losses:
            own, style = here[here["loss"] == loss], styles[loss]
            step = own.groupby("part")["step"].median()
            ratio = own.groupby("part")["ratio"].agg(["mean", "min", "max"])
            every = (len(step) // 10, max(1, len(step) // 5))
            axis.plot(step, ratio["mean"], **style.plotted(markevery=every, label=loss_label(loss)))
            if own["seed"].nunique() > 1:
                band = {"color": style.colour, "alpha": 0.16, "linewidth": 0}
                axis.fill_between(step, ratio["min"], ratio["max"], **band)
        axis.set_yscale("log")
        axis.set_xlabel("Optimiser step")
    for axis in axes[:, 0]:
        axis.set_ylabel("Weighted auxiliary : cross-entropy")
    plain_ticks(axes[0, 0])  # of all: the panels share them
    add_legend(figure)
    return figure
