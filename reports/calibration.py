"""Calibration of the digit distributions: is the most probable number right as often as it says?

Of every numeric token of a target, those of a rationale before the answer included, given the true
text before it: confidence is the largest probability over V_num, and it is right if that number is
the target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run, parameter
from smmd_bench.publishing.style import (
    GREY,
    LossStyle,
    add_legend,
    loss_label,
    loss_styles,
    model_label,
)
from smmd_bench.publishing.tables import number, with_interval

from ._calibration import Corrected, binned, corrected_errors
from ._cells import in_order, missing_note
from ._columns import row_table
from ._figure_notes import n_and_seeds
from ._main_losses import main_losses
from ._panels import Pair, of_pair, panel_grid, select_panels
from ._probes import rationale_shares, with_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GROUPS, LOSSES = 6, 7
"""Panels, and losses in each, drawn at most; table and CSV have all."""
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
        cells = _cells(run, self.bins)
        data, errors = _data(cells, self.bins), _errors(cells)
        drawn, left_out = select_panels(errors, GROUPS, LOSSES)
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
        table = row_table(_rows(errors), self.title)
        return Artefact(caption, table, _figure(data, drawn, self.bins), data)


def _cells(run: Run, bins: int) -> pd.DataFrame:
    """One row a cell that has probes: model, task, loss, seed, its `Binned` probes, examples."""
    rows = []
    for cell in with_numbers(run).to_dict("records"):
        probes = run.read("probes", _COLUMNS, [str(cell["address"])])
        if len(probes):
            found = binned(probes, bins)
            identity = {name: cell[name] for name in (*KEY, "seed")}
            rows.append({**identity, "binned": found, "examples": len(found.size)})
    return in_order(pd.DataFrame(rows), run.cells)


def _data(cells: pd.DataFrame, bins: int) -> pd.DataFrame:
    """One row a model, task, loss, seed and bin that is not empty."""
    edges = np.linspace(0, 1, bins + 1)
    parts = []
    for cell in cells.itertuples():
        found: Any = cell.binned
        n = found.count.clip(min=1)
        columns = {name: getattr(cell, name) for name in (*KEY, "seed")}
        columns |= {"bin_from": edges[:-1], "bin_to": edges[1:], "n": found.count}
        columns |= {"confidence": found.confidence / n, "accuracy": found.right / n}
        parts.append(pd.DataFrame(columns)[found.count > 0])
    return in_order(pd.concat(parts, ignore_index=True), cells)


def _errors(cells: pd.DataFrame) -> pd.DataFrame:
    """One row a model, task and loss: its error over the seeds, plain and corrected."""
    by_loss = cells.groupby(KEY, observed=True)
    losses = by_loss.agg(binned=("binned", list), examples=("examples", "max"))
    losses["different"] = by_loss["examples"].nunique() > 1
    rows = []
    together = ["model", "task", "examples", "different"]
    for (*_, different), group in losses.reset_index().groupby(together, observed=True):
        # Seeds with different numbers of examples have no resample in common.
        alone = [None] * len(group)
        corrected = alone if different else corrected_errors([*group["binned"]])
        for loss, found in zip(group.itertuples(), corrected, strict=True):
            seeds: Any = loss.binned
            sizes = [int(seed.size.sum()) for seed in seeds]
            row = {name: getattr(loss, name) for name in (*KEY, "examples")}
            row |= {"seeds": len(seeds), "positions": max(sizes)}
            row |= {"plain": float(np.mean([seed.error for seed in seeds]))}
            for name in ("accuracy", "confidence"):
                field = "right" if name == "accuracy" else name
                row[name] = sum(getattr(seed, field).sum() for seed in seeds) / sum(sizes)
            rows.append({**row, **(found or Corrected(*[np.nan] * 3))._asdict()})
    return in_order(pd.DataFrame(rows), cells).sort_values(KEY, ignore_index=True)


def _rows(errors: pd.DataFrame) -> Iterator[dict[str, str]]:
    for row in errors.to_dict("records"):
        yield {
            "Model": model_label(str(row["model"])),
            "Task": str(row["task"]),
            "Loss": loss_label(str(row["loss"])),
            "ECE (%)": with_interval(*(100 * row[name] for name in Corrected._fields)),
            "Plain ECE (%)": number(100 * row["plain"], 2),
            "Confidence (%)": number(100 * row["confidence"], 1),
            "Accuracy (%)": number(100 * row["accuracy"], 1),
            "Seeds": str(row["seeds"]),
            "Examples": f"{row['examples']:,}",
            "Positions": f"{row['positions']:,}",
        }


def _figure(data: pd.DataFrame, drawn: dict[Pair, list[str]], bins: int) -> Figure:
    figure, axes = panel_grid(drawn, 4.0, parts=(3, 1))
    styles = loss_styles(data["loss"].cat.categories)
    panels = zip(axes[::2].flat, axes[1::2].flat, drawn.items(), strict=False)
    for above, below, (pair, losses) in panels:
        here = of_pair(data, pair)
        sums = here.assign(right=here["accuracy"] * here["n"], sure=here["confidence"] * here["n"])
        by_bin = sums.groupby(["loss", "bin_from"], observed=True)[["n", "right", "sure"]].sum()
        for loss in losses:
            of_loss: Any = by_bin.loc[loss]
            _draw(above, below, of_loss, loss, styles[loss], bins)
        above.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1, zorder=1)
        above.set(xlim=(0, 1), ylim=(0, 1), ylabel="Accuracy")
        above.tick_params(labelbottom=False)
        if (by_bin["n"] < FEWEST).all():
            text = f"no bin has {FEWEST} positions"
            above.text(0.98, 0.05, text, ha="right", transform=above.transAxes, color=GREY)
        below.set(xlim=(0, 1), xlabel="Confidence", ylabel="Share")
        below.set_ylim(bottom=0)
    add_legend(figure)
    return figure


def _draw(
    above: Axes, below: Axes, by_bin: pd.DataFrame, loss: str, style: LossStyle, bins: int
) -> None:
    """The reliability of a loss, and below it how its positions are shared out over the bins."""
    enough = by_bin[by_bin["n"] >= FEWEST]
    clip = enough.empty  # else the markers at 1 are cut; of no points a layout fails
    drawn = style.plotted(4, linewidth=1.3, clip_on=clip, label=loss_label(loss))
    above.plot(enough["sure"] / enough["n"], enough["right"] / enough["n"], **drawn)
    shares = np.zeros(bins)
    at = np.rint(by_bin.index.to_numpy(np.float64) * bins).astype(int)
    shares[at] = by_bin["n"] / by_bin["n"].sum()
    below.stairs(shares, np.linspace(0, 1, bins + 1), **style.lined(linewidth=1.1))
