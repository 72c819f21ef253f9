"""How large the auxiliary of each loss is beside cross-entropy, by training step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.plugin_system.tuned_label import untuned_label
from smmd_bench.publishing.style import LossStyle, loss_label, model_label
from smmd_bench.publishing.tables import number

from ._caption import split_caption, steps_note
from ._cells import KEY, REFERENCE, in_order, main_losses
from ._columns import row_head, row_table
from ._panels import draw_panels, plain_ticks, select_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STRETCHES = 40
"""Stretches of a training, of each of which a median is drawn."""
GROUPS, LOSSES = 6, 8
"""Panels, and losses in each, drawn at most; table and CSV have all."""
RATIO = "relative_auxiliary"


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
        run, left = main_losses(run)
        data = magnitudes(run)
        drawn, left_out = select_panels(data, GROUPS, LOSSES)
        table = row_table(_rows(data), self.title)
        shown = (
            "Lambda times the auxiliary over the cross-entropy of the same optimiser step; for a "
            "loss that replaces cross-entropy, its share at numeric positions. At 1 (line) they "
            f"weigh the same. Drawn is the median of each {STRETCHES}th of the training, mean over "
            "seeds; band: the smallest and largest of the seeds."
        )
        below = ", ".join(map(loss_label, data.loc[data["ratio"] <= 0, "loss"].unique()))
        hidden = (
            "A logarithmic axis shows nothing at or below 0, where the auxiliary of "
            f"{below} is at times."
        )
        notes = (hidden if below else "", left_out, left, _without_log(run, data))
        caption = split_caption(shown, *notes, more=steps_note(data))
        label = "Weighted auxiliary : cross-entropy"
        figure = draw_panels(data, drawn, _draw, 2.8, label, sharey=True)
        plain_ticks(figure.axes[0])  # of all: the panels share them
        return Artefact(table=table, figure=figure, data=data, **caption)


def magnitudes(run: Run) -> pd.DataFrame:
    """One row a cell and stretch of its training: its last step, part (0 to 1) and median ratio."""
    columns = [*KEY, "seed", "step", "part", "ratio"]
    parts = [pd.DataFrame(columns=columns)]
    for cell in run.cells.to_dict("records"):
        log = run.read("train_log", ["step", RATIO], [str(cell["address"])])
        if log.empty or RATIO not in log:
            continue
        stretch = np.ceil(log["step"] / log["step"].max() * STRETCHES).clip(1)
        logged = log.astype({RATIO: "float64"}).groupby(stretch)
        found = logged.agg({RATIO: "median", "step": "max"})
        part = found.set_axis(["ratio", "step"], axis=1).dropna()
        part = part.assign(part=part.index / STRETCHES, **{k: cell[k] for k in (*KEY, "seed")})
        parts += [part] if len(part) else []
    return in_order(pd.concat(parts[1:] or parts, ignore_index=True)[columns], run.cells)


def _without_log(run: Run, data: pd.DataFrame) -> str:
    """A sentence on the trained losses without an auxiliary in a log; empty where all have one."""
    known = set(data[KEY].itertuples(index=False, name=None))
    lost = []
    for key, cells in run.cells.groupby(KEY, observed=True):
        model, task, loss = map(str, key)
        if untuned_label(loss) not in ("base", REFERENCE) and (model, task, loss) not in known:
            states = " and ".join(cells["status"].unique())
            lost.append(f"{loss_label(loss)} ({model_label(model)} on {task}, {states})")
    return f"Without an auxiliary in a training log: {'; '.join(lost)}." if lost else ""


def _rows(data: pd.DataFrame) -> Iterator[dict[str, str]]:
    tenths = {"First tenth": (0, 0.1), "Last tenth": (0.9, 1), "Whole training": (0, 1)}
    for key, group in data.groupby(KEY, observed=True):
        row = row_head(dict(zip(KEY, key, strict=True)))
        for name, ends in tenths.items():
            inside = group[group["part"].between(*ends, inclusive="right")]
            row[name] = number(float(inside.groupby("seed")["ratio"].median().mean()), 3)
        yield {**row, "Seeds": str(group["seed"].nunique())}


def _draw(axis: Axes, data: pd.DataFrame, styles: dict[str, LossStyle]) -> None:
    axis.axhline(1, color="black", linewidth=0.9)
    for loss, style in styles.items():
        own = data[(data["loss"] == loss) & (data["ratio"] > 0)]
        step = own.groupby("part")["step"].median()
        ratio = own.groupby("part")["ratio"].agg(["mean", "min", "max"])
        every = (len(step) // 10, max(1, len(step) // 5))
        axis.plot(step, ratio["mean"], **style.plotted(markevery=every, label=loss_label(loss)))
        if own["seed"].nunique() > 1:
            axis.fill_between(
                step, ratio["min"], ratio["max"], color=style.colour, alpha=0.16, linewidth=0
            )
    axis.set_yscale("log")
    axis.set_xlabel("Optimiser step")
