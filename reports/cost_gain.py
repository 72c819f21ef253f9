"""Cost against gain: the time of a training step beside the difference to cross-entropy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import LossStyle, loss_label, loss_styles
from smmd_bench.publishing.tables import DASH, with_interval

from ._caption import write_caption
from ._cells import KEY, REFERENCE, in_order, main_losses, why_missing
from ._columns import row_head, row_table
from ._gains import INTERVALS, gains, reference_of, seed_gains, why_no_gain, window
from ._panels import draw_panels, select_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WARM_UP = 0.05
"""The share of a training's first steps that is left out."""
GROUPS, LOSSES = 6, 12
"""Panels, and losses in each, drawn at most; table and CSV have all."""
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
        if any(tuple(row[key] for key in KEY) in known for row in _step_costs(run)):
            return None
        return "no loss and cross-entropy have logged step times for the same seed"

    def build(self, run: Run) -> Artefact:
        """One panel a model and task, one point a loss."""
        run, left = main_losses(run)
        data = gains(seed_gains(run)).merge(step_costs(run), on=KEY)
        table = row_table(_rows(run, data), self.title)
        shown = (
            "What a step costs against what the loss gains, both over cross-entropy of this run. "
            "Across: the wall time of an optimiser step over that of the same step of "
            "cross-entropy in this run, median and middle half, without the first "
            f"{WARM_UP:.0%} of the steps; where a machine does other work as well, these ratios "
            "say more of that work than of the loss: `smmd-bench overhead` measures them side by "
            "side. Up: the difference of the task's first metric to cross-entropy; higher in the "
            f"panel is better. {INTERVALS} A bar may go on beyond the panel."
        )
        drawn, left_out = select_panels(data, GROUPS, LOSSES)
        caption = write_caption(run, run.cells, shown, left_out, left)
        return Artefact(
            table=table, figure=draw_panels(data, drawn, _draw, 3.0), data=data, **caption
        )


def step_costs(run: Run) -> pd.DataFrame:
    """One row a model, task and loss: how many steps are paired with cross-entropy's by seed and
    number, and the median and quartiles of the ratio of their times."""
    columns = [*KEY, "steps", *COST]
    return in_order(pd.DataFrame(_step_costs(run), columns=columns), run.cells)


def _step_costs(run: Run) -> Iterator[dict[str, Any]]:
    """The rows of `step_costs`, each read when it is asked for."""
    for (model, task), cells in run.cells.groupby(["model", "task"], observed=True):
        log = run.read("train_log", ["step", "seconds"], cells["address"])
        if "seconds" not in log:
            continue
        log = log[log["step"] > WARM_UP * log.groupby("address")["step"].transform("max")]
        times = log.groupby(["seed", "step", "loss"], observed=True)["seconds"].first().unstack()
        if REFERENCE not in times:
            continue
        ratios = times.astype("float64").div(times[REFERENCE], axis=0).drop(columns=REFERENCE)
        for loss, paired in ratios[np.isfinite(ratios)].items():
            if steps := int(paired.count()):
                found = dict(zip(COST, paired.quantile([0.5, 0.25, 0.75]), strict=True))
                yield {"model": model, "task": task, "loss": loss, "steps": steps, **found}


def _rows(run: Run, data: pd.DataFrame) -> Iterator[dict[str, str]]:
    """The rows of the table; a loss that has no result has the reason in place."""
    found = {tuple(row[key] for key in KEY): row for row in data.to_dict("records")}
    cells = run.cells[~run.cells["loss"].isin(["base", REFERENCE])]
    pairs = {key[:2] for key in found}
    for key, there in cells.groupby(KEY, observed=True):
        head = row_head(there.iloc[0])
        if key in found:
            row = found[key]
            yield {
                **head,
                RATIO: with_interval(*(row[name] for name in COST)),
                "Steps": f"{row['steps']:,}",
                "Metric": str(row["label"]),
                "Δ to CE": with_interval(row["difference"], row["low"], row["high"], sign=True),
                "Seeds": str(row["seeds"]),
                "n": f"{row['n']:,}",
            }
        elif key[:2] in pairs:
            yield {**head, RATIO: why_missing(there) or DASH}


def _draw(axis: Axes, data: pd.DataFrame, styles: dict[str, LossStyle]) -> None:
    axis.axhline(0, color="black", linewidth=0.9)
    axis.axvline(1, color="black", linewidth=0.9)
    point: dict[str, Any] = {"linestyle": "none", "zorder": 3}
    ce = loss_styles([REFERENCE])[REFERENCE]
    axis.plot(1, 0, **ce.plotted(label=loss_label(REFERENCE), **point))
    data = data[data["loss"].isin(styles)]
    for row in data.to_dict("records"):
        loss, x, y = str(row["loss"]), row["ratio"], row["difference"]
        colour = styles[loss].colour
        axis.plot([row["ratio_low"], row["ratio_high"]], [y, y], color=colour, alpha=0.7)
        axis.plot([x, x], [row["low"], row["high"]], color=colour, alpha=0.7)
        filled = colour if row["seeds"] > 1 else "white"
        how = styles[loss].plotted(7, label=loss_label(loss), markerfacecolor=filled, **point)
        axis.plot(x, y, **how)
    first, ends = data.iloc[0], window(data, data)
    lower = first["better"] == "lower"
    axis.set_ylim(*(reversed(ends) if lower else ends))
    axis.set_xlabel(RATIO)
    axis.set_ylabel(f"Δ {first['label']} to CE{', reversed axis' if lower else ''}")
