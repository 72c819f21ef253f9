"""GSM8K overall error histogram (the paper's Appendix C.7): log10(|ŷ - y| + 1) of each loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import LossStyle, add_legend, loss_label, loss_styles, shortened
from smmd_bench.publishing.tables import DASH, number, with_interval

from . import _error_panels as panels
from ._caption import when
from ._cells import in_order, main_losses
from ._columns import row_head
from ._errors import CommonErrors, common_errors, why_none
from ._panels import block_grid, of_pair
from ._paper import published, reference, rows
from ._values import mean_over_seeds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EDGES = np.linspace(0, 6, 25)
"""Edges of the bins of log10(|ŷ - y| + 1); errors from 10^6 on are counted as outside."""
QUANTILE = 0.9
TAIL = 0.005
"""The share of a loss's answers that may lie beyond the end of the axis."""
GROUPS = 4
"""Models and tasks that are drawn at most; the table has all, and all losses."""
TABLE = "error_p90"


@dataclass(frozen=True)
class ErrorHistogram:
    """How far answers are off, each loss against cross-entropy on the same examples."""

    name: ClassVar[str] = "error_histogram"
    title: ClassVar[str] = "Histogram of absolute errors"
    paper: ClassVar[str] = "Figure 7 (Appendix C.7)"

    def skip(self, run: Run) -> str | None:
        """Two trained losses with answers to the same examples are needed."""
        return why_none(run)

    def build(self, run: Run) -> Artefact:
        """One row of panels a model and task, one panel a loss over the reference."""
        run, left = main_losses(run)
        found = common_errors(run)
        data = in_order(pd.concat(map(error_bins, found)), run.cells)
        table = _table(found)
        table.attrs["title"] = self.title
        values = [f"{row['p90']:.2f} with {loss_label(row['loss'])}" for row in rows(TABLE)]
        paper = (
            f"The p90 of {reference(TABLE)} on gsm8k is {' and '.join(values)}, on 1,319 examples "
            "of a model that it does not name."
        )
        outside = "Outside, with errors of about a million and more"
        caption = panels.error_caption(
            run,
            found,
            GROUPS,
            _CAPTION,
            when(any(common.pair.task == "gsm8k" for common in found), paper),
            panels.outside_note(outside, found, data),
            left,
        )
        blocks = panels.drawn_blocks(panels.with_enough(found))[:GROUPS]
        figure = _figure(blocks, data) if blocks else None
        return Artefact(table=table, figure=figure, data=data, **caption)


_CAPTION = (
    "Share of answers by log10(|error| + 1), the error being the answer given minus the true one, "
    "on the scale of square roots. Each panel has one loss over the reference (grey area): "
    "cross-entropy, or the first loss where there is none. The axis ends where all but "
    f"{TAIL:.1%} of the answers of every loss lie. Vertical lines, and numbers in the titles: the "
    "90th percentile (p90) of the absolute error, mean over seeds; in the table with a 95 % "
    "interval by order statistics, or with the standard deviation over seeds (±)."
)


def error_bins(common: CommonErrors) -> pd.DataFrame:
    """The histograms of a pair's loss and of the reference, on the same examples.

    `pair` is the loss beside the reference, `loss` whose answers these are, `low` and `high` are
    the ends of a bin of log10(|ŷ - y| + 1), the last without an upper end. `n` are the answers of
    each, `share` is in percent of it.
    """
    pair, n, edges = common.pair, common.n, np.append(EDGES, np.inf)
    parts = []
    for loss in (pair.reference, pair.loss):
        errors = common.of(loss)["error"].to_numpy(np.float64)
        counts, _ = np.histogram(np.log10(errors + 1), edges)
        part = pd.DataFrame({"low": edges[:-1], "high": edges[1:], "count": counts})
        part = part.assign(share=100 * counts / max(1, n), loss=loss, n=n, seeds=len(pair.seeds))
        parts.append(part.assign(model=pair.model, task=pair.task, pair=pair.loss))
    columns = ["model", "task", "pair", "loss", "seeds", "n", "low", "high", "count", "share"]
    return pd.concat(parts, ignore_index=True)[columns]


def p90_by_seed(common: CommonErrors, loss: str) -> pd.Series[float]:
    """The 90th percentile of |ŷ - y| of a loss by seed, interpolated linearly as the paper's."""
    errors = common.of(loss).groupby("seed")["error"]
    return errors.quantile(QUANTILE)


def _table(found: Sequence[CommonErrors]) -> pd.DataFrame:
    """One row a pair, the paper's values last where it has any."""
    table = pd.DataFrame([_row(common) for common in found]).fillna(DASH)
    paper = [name for name in table if str(name).startswith("Paper")]
    others = [name for name in table if name not in paper]
    table = table[[*others, *(name for name in paper if (table[name] != DASH).any())]]
    table.attrs["values"] = [*table.columns.drop(["Model", "Task", "Loss", "Seeds"])]
    return table


def _row(common: CommonErrors) -> dict[str, str]:
    pair, other = common.pair, loss_label(common.pair.reference)
    losses, key = (pair.loss, pair.reference), {"model": pair.model, "task": pair.task}
    paper = [published(TABLE, **key, loss=loss).get("p90") for loss in losses]
    return {
        **row_head(vars(pair)),
        "n": f"{common.n:,}",
        "Seeds": str(len(pair.seeds)),
        "Error 0 (%)": _exact(common, pair.loss),
        "p90 of the error": _p90(common, pair.loss),
        f"{other}: error 0 (%)": _exact(common, pair.reference),
        f"{other}: p90": _p90(common, pair.reference),
        f"Paper p90 ({other})": "{} ({})".format(*map(number, paper)) if paper[0] else DASH,
    }


def _exact(common: CommonErrors, loss: str) -> str:
    return number(100 * float((common.of(loss)["error"] == 0).mean()), 1)


def _p90(common: CommonErrors, loss: str) -> str:
    """The percentile with its interval of one seed, or mean and deviation over several."""
    from scipy.stats import quantile_test

    p90 = p90_by_seed(common, loss)
    digits = _digits(float(p90.mean()))
    if len(p90) != 1:
        return mean_over_seeds(p90, digits)
    errors = common.of(loss)["error"].to_numpy(np.float64)
    found = quantile_test(errors, p=QUANTILE).confidence_interval()  # NaN where n is too small
    return with_interval(p90.iloc[0], float(found.low), float(found.high), digits)


def _digits(p90: float) -> int:
    """Decimals that an error of that size is given with."""
    return 1 if p90 >= 10 else 2


def _figure(blocks: list[panels.Block], data: pd.DataFrame) -> Figure:
    labels = [(panels.block_label(block[0].pair), 1, len(block)) for block in blocks]
    figure, grids = block_grid(labels, head=0.4, height=2.5)
    styles = loss_styles(data["loss"].cat.categories)
    for (axes,), block in zip(grids, blocks, strict=True):
        here = of_pair(data, (block[0].pair.model, block[0].pair.task))
        here = here[here["pair"].isin([common.pair.loss for common in block])]
        for axis, common in zip(axes, block, strict=True):
            axis.set_xlabel("log10(|error| + 1)")
            own = here[(here["pair"] == common.pair.loss) & np.isfinite(here["high"])]
            percentiles = []
            for height, loss in ((0.95, common.pair.reference), (0.86, common.pair.loss)):
                shares = own.loc[own["loss"] == loss, "share"]
                panels.draw_shares(axis, shares, EDGES, styles[loss], loss == common.pair.reference)
                p90 = float(p90_by_seed(common, loss).mean())
                _mark(axis, p90, height, loss, styles[loss])
                percentiles.append(number(p90, _digits(p90)))
            other = shortened(loss_label(common.pair.reference), 12)
            both = f"p90 {percentiles[1]}", f"({other} {percentiles[0]})"
            p90s = ("\n" if len(" ".join(both)) > 24 else " ").join(both)
            axis.set_title(f"{panels.panel_title(common, common.n)}\n{p90s}")
        most = float(here["share"].max())
        panels.set_share_scale(axes[0], most, (0, 1, 5, 10, 20, 40, 60, 80, 100))  # shared by all
        last = axis_end(here)
        axes[0].set(ylim=(0, 1.7 * max(most, 1)), ylabel="Answers (%)", xlim=(0, last))
        axes[0].set_xticks(np.arange(0, last + 0.01, 0.5 if last < 2 else 1))
    add_legend(figure)
    return figure


def axis_end(data: pd.DataFrame) -> float:
    """The end of the bin up to which every histogram has all of its answers but the TAIL."""
    data = data.reset_index(drop=True)
    beyond = data[::-1].groupby(["pair", "loss"], observed=True)["count"].cumsum().sort_index()
    needed = data[beyond > TAIL * data["n"]]
    return float(np.clip(needed["high"].max(), 2 * EDGES[1], EDGES[-1]))


def _mark(axis: Axes, p90: float, height: float, loss: str, style: LossStyle) -> None:
    """A vertical line at a percentile, with the loss's marker at that height, above the bars."""
    where = math.log10(p90 + 1)
    panel = axis.get_xaxis_transform()
    axis.plot([where], [height], **style.plotted(7, transform=panel, label=loss_label(loss)))
    axis.axvline(where, **style.lined(linewidth=1))
