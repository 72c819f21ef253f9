"""Calibration of the digit distributions: is the most probable number right as often as it says?

Of every numeric token of a target, those of a rationale before the answer included, given the true
text before it: confidence is the largest probability over V_num, and it is right if that number is
the target.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run, parameter
from smmd_bench.publishing.style import (
    GREY,
    LossStyle,
    loss_label,
    loss_styles,
    model_label,
    new_figure,
    width_for,
)
from smmd_bench.publishing.tables import DASH, number, with_interval

from ._calibration import Binned, Corrected, binned, corrected_errors
from ._cells import in_order, missing_note
from ._figure_notes import n_and_seeds
from ._main_losses import main_losses
from ._panels import fitted_legend, of_pair, pair_title, that_fit
from ._probes import rationale_shares, with_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GROUPS, COLUMNS, LOSSES = 6, 3, 7
"""Panels in all and side by side, and losses in each, drawn at most; table and CSV have all."""
FEWEST = 20
"""Positions that a bin needs to be drawn."""
KEY = ["model", "task", "loss"]
_COLUMNS = ["digit", "target_value", "argmax_value", "maximum"]


def _bins(value: int) -> str | None:
    return None if 2 <= value <= 100 else "must be from 2 to 100"


@dataclass(frozen=True)
class Calibration:
    """Reliability diagrams, and the expected calibration error over V_num."""

    name: ClassVar[str] = "calibration"
    title: ClassVar[str] = "Calibration of the digit distributions"
    paper: ClassVar[str] = "not in the paper"

    bins: int = parameter(15, "equally wide bins of confidence", check=_bins)

    def skip(self, run: Run) -> str | None:
        """Digit probes of answers that are numbers are needed."""
        if run.having("probes").empty:
            return "no cell has digit probes"
        cells = with_numbers(run)["address"]
        some = any(len(run.read("probes", ["digit"], [address])) for address in cells)
        return None if some else "no task with probes has numbers as answers"

    def build(self, run: Run) -> Artefact:
        """One panel a model and task, one line a loss."""
        run, left_to_ablations = main_losses(run)
        found = _cells(run, self.bins)
        data, errors = _data(run, found, self.bins), _errors(run, found)
        table = _table(errors)
        table.attrs["title"] = self.title
        drawn, left_out = that_fit(errors, GROUPS, LOSSES)
        numeric = with_numbers(run)
        caption = (
            "Every numeric token of the targets of the test examples, those of a rationale before "
            "the answer included, the model given the true text before it. Confidence: the largest "
            "probability over V_num (softmax over the numeric tokens alone); accuracy: how often "
            "that number is the target. On the diagonal both agree; below it a model is surer than "
            "it should be. "
            f"{self.bins} equally wide bins; those of fewer than {FEWEST} positions are not drawn. "
            "Below: the share of the positions by confidence. Plain ECE: the mean over positions "
            "of |accuracy − confidence| of their bin, to which the noise of the bins adds. ECE: "
            "without that bias as far as a bootstrap over examples shows it (twice the plain one "
            "less the median of the resamples), with the basic 95% interval of the same resamples."
        )
        if errors["seeds"].max() > 1:
            caption += " Both are means over the seeds; curves pool them."
        caption += " Examples and positions are those that one seed has probes of."
        for task, share in rationale_shares(run).items():
            caption += (
                f" On {task} {100 * share:.0f} % of the positions are outside the final answer."
            )
        shown = set(errors[KEY].itertuples(index=False, name=None))
        keys = numeric[KEY].itertuples(index=False, name=None)
        caption += n_and_seeds(run, numeric[[key in shown for key in keys]])
        caption += left_out + left_to_ablations + missing_note(numeric)
        return Artefact(caption, table, _figure(data, drawn, self.bins), data)


def _cells(run: Run, bins: int) -> dict[tuple[str, str, str, int], Binned]:
    """The binned probes of every cell that has any, by model, task, loss and seed."""
    found = {}
    for cell in with_numbers(run).to_dict("records"):
        probes = run.read("probes", _COLUMNS, [str(cell["address"])])
        if len(probes):
            key = str(cell["model"]), str(cell["task"]), str(cell["loss"]), int(cell["seed"])
            found[key] = binned(probes, bins)
    return found


def _data(run: Run, found: dict[tuple[str, str, str, int], Binned], bins: int) -> pd.DataFrame:
    """One row a model, task, loss, seed and bin that is not empty."""
    edges = np.linspace(0, 1, bins + 1)
    count, right, confidence = (
        np.concatenate([getattr(cell, name) for cell in found.values()])
        for name in ("count", "right", "confidence")
    )  # [cells * bins]
    cells = pd.DataFrame(found.keys(), columns=[*KEY, "seed"])
    with np.errstate(invalid="ignore"):
        data = cells.loc[cells.index.repeat(bins)].assign(
            bin_from=np.tile(edges[:-1], len(cells)),
            bin_to=np.tile(edges[1:], len(cells)),
            n=count.astype(np.int64),
            confidence=confidence / count,
            accuracy=right / count,
        )
    return in_order(data[data["n"] > 0].reset_index(drop=True), run.cells)


def _errors(run: Run, found: dict[tuple[str, str, str, int], Binned]) -> pd.DataFrame:
    """One row a model, task and loss: its error over the seeds, plain and corrected."""
    by_loss: dict[tuple[str, str, str], list[Binned]] = defaultdict(list)
    for (model, task, loss, _), cell in found.items():
        by_loss[model, task, loss].append(cell)
    together: dict[tuple[str, str, int], list[tuple[str, str, str]]] = defaultdict(list)
    for key, cells in by_loss.items():
        sizes = {len(cell.size) for cell in cells}
        together[*key[:2], sizes.pop() if len(sizes) == 1 else -1].append(key)
    rows = []
    for (_, _, n), keys in together.items():
        # Seeds with different numbers of examples have no resample in common.
        found_here = corrected_errors([by_loss[key] for key in keys]) if n > 0 else []
        for key, corrected in zip_longest(keys, found_here):
            cells = by_loss[key]
            positions = sum(cell.size.sum() for cell in cells)
            rows.append(
                {
                    **dict(zip(KEY, key, strict=True)),
                    "seeds": len(cells),
                    "examples": max(len(cell.size) for cell in cells),
                    "positions": int(max(cell.size.sum() for cell in cells)),
                    "accuracy": sum(cell.right.sum() for cell in cells) / positions,
                    "confidence": sum(cell.confidence.sum() for cell in cells) / positions,
                    "plain": float(np.mean([cell.error for cell in cells])),
                    **(corrected or Corrected(math.nan, math.nan, math.nan))._asdict(),
                }
            )
    return in_order(pd.DataFrame(rows), run.cells).sort_values(KEY, ignore_index=True)


def _table(errors: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {
            "Model": model_label(str(row["model"])),
            "Task": str(row["task"]),
            "Loss": loss_label(str(row["loss"])),
            "ECE (%)": DASH
            if math.isnan(row["error"])
            else with_interval(*(100 * row[name] for name in Corrected._fields)),
            "Plain ECE (%)": number(100 * row["plain"], 2),
            "Confidence (%)": number(100 * row["confidence"], 1),
            "Accuracy (%)": number(100 * row["accuracy"], 1),
            "Seeds": str(row["seeds"]),
            "Examples": f"{row['examples']:,}",
            "Positions": f"{row['positions']:,}",
        }
        for row in errors.to_dict("records")
    ]
    table = pd.DataFrame(rows)
    return table.drop(columns=[c for c in ("Model", "Task") if table[c].nunique() == 1])


def _figure(data: pd.DataFrame, drawn: dict[tuple[str, str], list[str]], bins: int) -> Figure:
    columns = min(COLUMNS, len(drawn))
    rows = -(-len(drawn) // columns)
    figure = new_figure(width_for(columns), 0.7 + 4.0 * rows)
    styles = loss_styles(data["loss"].cat.categories)
    axes = figure.subplots(
        2 * rows, columns, squeeze=False, gridspec_kw={"height_ratios": [3, 1] * rows}
    )
    above, below = axes[::2].ravel(), axes[1::2].ravel()
    for at, (pair, losses) in enumerate(drawn.items()):
        here = of_pair(data, pair)
        sums = here.assign(right=here["accuracy"] * here["n"], sure=here["confidence"] * here["n"])
        panels = {
            loss: sums[sums["loss"] == loss].groupby("bin_from")[["n", "right", "sure"]].sum()
            for loss in losses
        }
        _panel(above[at], below[at], panels, styles, bins)
        above[at].set_title(pair_title(pair), pad=9)  # markers at 1 reach above the panel
    for axis in (*above[len(drawn) :], *below[len(drawn) :]):
        axis.set_axis_off()
    fitted_legend(figure, above, (loss for losses in drawn.values() for loss in losses))
    return figure


def _panel(
    above: Axes,
    below: Axes,
    losses: dict[str, pd.DataFrame],
    styles: dict[str, LossStyle],
    bins: int,
) -> None:
    above.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1)
    for loss, by_bin in losses.items():
        style, enough = styles[loss], by_bin[by_bin["n"] >= FEWEST]
        above.plot(
            enough["sure"] / enough["n"], enough["right"] / enough["n"], color=style.colour,
            linestyle=style.line, marker=style.marker, label=loss_label(loss),
            markersize=7 if style.marker == "*" else 4, linewidth=1.3,
            clip_on=enough.empty,  # else the markers at 1 are cut; of no points a layout fails
        )  # fmt: skip
        shares = np.zeros(bins)
        at = np.rint(by_bin.index.to_numpy(np.float64) * bins).astype(int)
        shares[at] = by_bin["n"] / by_bin["n"].sum()
        below.stairs(
            shares, np.linspace(0, 1, bins + 1), color=style.colour, linestyle=style.line,
            linewidth=1.1,
        )  # fmt: skip
    above.set(xlim=(0, 1), ylim=(0, 1), ylabel="Accuracy")
    above.tick_params(labelbottom=False)
    if all((by_bin["n"] < FEWEST).all() for by_bin in losses.values()):
        text = f"no bin has {FEWEST} positions"
        above.text(0.98, 0.05, text, ha="right", transform=above.transAxes, color=GREY)
    below.set(xlim=(0, 1), xlabel="Confidence", ylabel="Share")
    below.set_ylim(bottom=0)
