"""Calibration of the digit distributions: is the most probable number right as often as it says?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run, parameter
from smmd_bench.publishing.style import GREY, LossStyle, add_legend, loss_label, loss_styles
from smmd_bench.publishing.tables import number, with_interval

from ._calibration import Binned, Corrected, binned, corrected_errors
from ._caption import sample_note, write_caption
from ._cells import KEY, in_order, main_losses
from ._columns import row_head, row_table
from ._panels import FEWEST as EXAMPLES
from ._panels import Pair, few_note, of_pair, pair_name, pairs, panel_grid, select_panels
from ._probes import rationale_shares, with_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GROUPS, LOSSES = 6, 7
"""Panels, and losses in each, drawn at most; table and CSV have all."""
FEWEST = 20
"""Positions that a bin needs to be drawn."""
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
        run, left = main_losses(run)
        run = run.only(with_numbers(run))
        cells = _cells(run, self.bins)
        data, errors = _data(cells, self.bins), _errors(cells)
        examples = errors.groupby(["model", "task"], observed=True)["examples"].transform("max")
        few = few_note(map(pair_name, pairs(errors[examples < EXAMPLES])))
        drawn, left_out = select_panels(errors[examples >= EXAMPLES], GROUPS, LOSSES)
        rationales = [
            f"On {task} {100 * share:.0f} % of the positions are outside the final answer."
            for task, share in rationale_shares(run).items()
        ]
        several = bool(errors["seeds"].max() > 1)
        shown = (
            "Confidence against accuracy at every numeric token of the targets, given the true "
            "text before it. Those of a rationale before the answer are included. Confidence: the "
            "largest probability over V_num; accuracy: how often that number is the target; below "
            f"the diagonal a model is too sure. {self.bins} equally wide bins; those of fewer than "
            f"{FEWEST} positions are not drawn. Below: the share of the positions. ECE: without "
            "the bias by the noise of the bins, as far as a bootstrap over examples shows it, with "
            "its basic 95% interval; plain ECE has that bias."
            f"{' Both are means over the seeds; curves pool them.' * several} Examples and "
            "positions are those that one seed has probes of."
        )
        shared = run.cells.merge(errors[KEY], on=KEY)
        sample = sample_note(run, shared)
        caption = write_caption(
            run, run.cells, shown, *rationales, few, left_out, left, sample=sample
        )
        table = row_table(_rows(errors), self.title)
        figure = _figure(data, drawn, self.bins) if drawn else None
        return Artefact(table=table, figure=figure, data=data, **caption)


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
    for cell in cells.to_dict("records"):
        found: Binned = cell["binned"]
        columns = {name: cell[name] for name in (*KEY, "seed")}
        columns |= {"bin_from": edges[:-1], "bin_to": edges[1:], "n": found.count}
        part = pd.DataFrame(columns)[found.count > 0]
        sums = pd.DataFrame({"confidence": found.confidence, "accuracy": found.right})
        parts.append(part.join(sums.div(part["n"], axis=0)))
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
        found = [None] * len(group) if different else corrected_errors([*group["binned"]])
        for loss, corrected in zip(group.to_dict("records"), found, strict=True):
            seeds: list[Binned] = loss.pop("binned")
            sizes = [int(seed.size.sum()) for seed in seeds]
            row: dict[str, Any] = {"seeds": len(seeds), "positions": max(sizes)}
            row["plain"] = float(np.mean([seed.error for seed in seeds]))
            row["accuracy"] = sum(seed.right.sum() for seed in seeds) / sum(sizes)
            row["confidence"] = sum(seed.confidence.sum() for seed in seeds) / sum(sizes)
            row |= (corrected or Corrected(*[np.nan] * 3))._asdict()
            rows.append(loss | row)
    return in_order(pd.DataFrame(rows), cells).sort_values(KEY, ignore_index=True)


def _rows(errors: pd.DataFrame) -> Iterator[dict[str, str]]:
    for row in errors.to_dict("records"):
        yield {
            **row_head(row),
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
    sums = data.assign(right=data["accuracy"] * data["n"], sure=data["confidence"] * data["n"])
    panels = zip(axes[::2].flat, axes[1::2].flat, drawn.items(), strict=False)
    for above, below, (pair, losses) in panels:
        here = of_pair(sums, pair)
        for loss in losses:
            by_bin = here[here["loss"] == loss].groupby("bin_from")[["n", "right", "sure"]].sum()
            _draw(above, below, by_bin, styles[loss], loss_label(loss), bins)
        above.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1, zorder=1)
        above.set(xlim=(0, 1), ylim=(0, 1), ylabel="Accuracy")
        above.tick_params(labelbottom=False)
        if (here.groupby(["loss", "bin_from"], observed=True)["n"].sum() < FEWEST).all():
            text = f"no bin has {FEWEST} positions"
            above.text(0.98, 0.05, text, ha="right", transform=above.transAxes, color=GREY)
        below.set(xlim=(0, 1), xlabel="Confidence", ylabel="Share")
        below.set_ylim(bottom=0)
    add_legend(figure)
    return figure


def _draw(
    above: Axes, below: Axes, by_bin: pd.DataFrame, style: LossStyle, label: str, bins: int
) -> None:
    """The reliability of a loss, and below it how its positions are shared out over the bins."""
    enough = by_bin[by_bin["n"] >= FEWEST]
    clip = enough.empty  # else the markers at 1 are cut; of no points a layout fails
    drawn = style.plotted(4, linewidth=1.3, clip_on=clip, label=label)
    above.plot(enough["sure"] / enough["n"], enough["right"] / enough["n"], **drawn)
    edges = np.linspace(0, 1, bins + 1)
    shares = (by_bin["n"] / by_bin["n"].sum()).reindex(edges[:-1], fill_value=0)
    below.stairs(shares, edges, **style.lined(linewidth=1.1))
