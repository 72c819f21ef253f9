"""GSM8K signed errors by the last digit of the true answer (the paper's Appendix C.7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import add_legend, loss_label, loss_styles
from smmd_bench.publishing.tables import DASH, with_interval

from ._cells import in_order, main_losses, of_pair
from ._panels import FEWEST, LIMITS, block_grid, draw_shares, pair_name, set_share_scale
from ._text import NOTES, caption, row_head
from .error_histogram import SUBSET, Block, CommonErrors, common_errors, drawn_blocks, why_none

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUNDS = (0, 1, 3, 10, 30, 100, 300, 1000)
"""Upper ends of the bins of |ŷ - y|: exactly 0, then up to 1, up to 3 and so on, on both sides."""
KEY = ["model", "task", "pair", "loss", "digit"]
_LAST_WHOLE = 2.0**53
"""Beyond it float64 does not hold every whole number, so that last digits are unknown."""
GROUPS = 1
"""Models and tasks drawn, which fill a printed page; the table has all."""
SHOWN = (
    "Share of the answers to the n examples with that last digit by the answer minus the true one, "
    "over the reference (grey area). Answers further off are counted and not drawn; true answers "
    f"that are no whole number are left out. {SUBSET} {LIMITS}"
)


@dataclass(frozen=True)
class SignedErrors:
    """Whether answers are too small or too large, by the last digit of the true one."""

    name: ClassVar[str] = "signed_errors"
    title: ClassVar[str] = "Signed errors by the last digit of the true answer"
    paper: ClassVar[str] = "Figure 8 (Appendix C.7)"

    def skip(self, run: Run) -> str | None:
        """Two trained losses with answers to the same examples are needed."""
        return why_none(run)

    def build(self, run: Run) -> Artefact:
        """Ten rows of panels a model and task, one column a loss over the reference."""
        run = main_losses(run)
        found = common_errors(run, ["answer", "parsed"])
        data = in_order(pd.concat(map(signed_bins, found), ignore_index=True), run.cells)
        table = pd.DataFrame(_rows(drawn_blocks(found, fewest=0), data))
        table.attrs["title"] = self.title
        figure = _figure(drawn_blocks(found, GROUPS), data)
        return Artefact(caption(run, run.cells, SHOWN), table, figure, data, NOTES)


def signed_bins(common: CommonErrors) -> pd.DataFrame:
    """The signed errors of a loss and of the reference, on the same examples.

    `pair` is the loss beside the reference, `loss` whose answers these are, `digit` the last digit
    of the true answer (of whole answers only), `low` and `high` are the ends of a bin without the
    one nearer to 0. `n` are the answers of each with that digit, `share` is in percent of it.
    """
    answer = common.frame["answer"].to_numpy(np.float64)
    whole = (answer == np.floor(answer)) & (np.abs(answer) <= _LAST_WHOLE)
    frame, answer = common.frame[whole], answer[whole]
    error = frame["parsed"].to_numpy(np.float64) - answer
    steps = np.searchsorted(BOUNDS, np.abs(error))  # 0: exact, len(BOUNDS): outside
    ends = np.array([*BOUNDS, np.inf])
    sides = np.arange(-len(BOUNDS), len(BOUNDS) + 1)  # [17]
    cells = pd.DataFrame({"loss": frame["loss"].astype("str").to_numpy()})
    cells["digit"] = np.mod(np.abs(answer), 10).astype(int)
    cells["side"] = (np.sign(error) * steps).astype(int)
    losses, names = (common.reference, common.loss), ["loss", "digit", "side"]
    every = pd.MultiIndex.from_product([losses, range(10), sides], names=names)
    data = cells.value_counts().reindex(every, fill_value=0).sort_index().reset_index()
    data["n"] = data.groupby(["loss", "digit"])["count"].transform("sum")
    data["share"] = 100 * data["count"] / data["n"].clip(lower=1)
    side = data["side"].to_numpy()
    far, near = ends[np.abs(side)], ends[np.maximum(np.abs(side) - 1, 0)]
    data["low"] = np.where(side > 0, near, -far) + 0.0
    data["high"] = np.where(side < 0, -near, far) + 0.0
    data = data.assign(model=common.model, task=common.task, pair=common.loss)
    data["seeds"] = len(common.seeds)
    return data[[*KEY, "low", "high", "seeds", "n", "count", "share"]]


def _rows(blocks: Sequence[Block], data: pd.DataFrame) -> Iterator[dict[str, str]]:
    """One row of the table a model, task, drawn loss and last digit: exact answers in percent."""
    exact = data.loc[(data["low"] == 0) & (data["high"] == 0), [*KEY, "n", "count"]]
    counts = {tuple(key): (n, count) for *key, n, count in exact.itertuples(index=False)}
    for common in (common for block in blocks for common in block):
        for digit in range(10):
            key, seeds = (common.model, common.task, common.loss), len(common.seeds)
            own, other = (counts[*key, loss, digit] for loss in (common.loss, common.reference))
            yield {
                **row_head(vars(common)),
                "Last digit": str(digit),
                "n": f"{own[0]:,}",
                "Exact (%)": _exact(*own, seeds),
                f"{loss_label(common.reference)}: exact (%)": _exact(*other, seeds),
            }


def _exact(n: int, count: int, seeds: int) -> str:
    """The share of exact answers; a second seed of the same examples does not narrow it."""
    from statsmodels.stats.proportion import proportion_confint

    if not n:
        return DASH
    low, high = proportion_confint(count / seeds, n / seeds, method="wilson")
    return with_interval(100 * count / n, 100 * low, 100 * high, 1)


def _figure(blocks: Sequence[Block], data: pd.DataFrame) -> Figure | None:
    """A row of panels for each last digit that enough examples of a drawn loss have; None: none."""
    data = data[data["n"] >= FEWEST * data["seeds"]]
    pairs = [(block, (block[0].model, block[0].task)) for block in blocks]
    shown = [(block, pair, of_pair(data, pair)) for block, pair in pairs]
    shown = [(b, pair, own[own["pair"].isin([c.loss for c in b])]) for b, pair, own in shown]
    shown = [each for each in shown if len(each[2])]
    if not shown:
        return None
    labels = [
        (f"{pair_name(pair)}: answers (%) by error", own["digit"].nunique(), len(block))
        for block, pair, own in shown
    ]
    figure, grids = block_grid(labels, head=1.0, height=0.78)
    styles = loss_styles(data["loss"].cat.categories)
    ends = len(BOUNDS)
    marks = {0: "0", BOUNDS.index(10) + 0.5: "10", BOUNDS.index(1000) + 0.5: "10³"}
    marks |= {-at: f"−{text}" for at, text in marks.items() if at}
    for axes, (block, _, here) in zip(grids, shown, strict=True):
        inside = here[np.isfinite(here["low"]) & np.isfinite(here["high"])]
        digits = sorted(here["digit"].unique())
        for (row, digit), (column, common) in product(
            zip(axes, digits, strict=True), enumerate(block)
        ):
            axis = row[column]
            own = inside[(inside["pair"] == common.loss) & (inside["digit"] == digit)]
            for loss in (common.reference, common.loss) if len(own) else ():
                shares, edges = own.loc[own["loss"] == loss, "share"], np.arange(2 * ends) - ends
                draw_shares(axis, shares, edges + 0.5, styles[loss], loss == common.reference)
                axis.plot([], [], **styles[loss].lined(label=loss_label(loss)))
            n = f"n = {own['n'].max():,}" if len(own) else ""
            axis.text(0.02, 0.97, n, transform=axis.transAxes, va="top", fontsize=8)
        for axis, common in zip(axes[0], block, strict=True):
            axis.set_title(common.title)
        for axis, digit in zip(axes[:, 0], digits, strict=True):
            axis.set_ylabel(f"last digit {digit}", rotation=0, ha="right", va="center")
        for axis in axes[-1]:
            axis.set_xlabel("error")
        set_share_scale(axes[0, 0], float(here["share"].max()), (0, 5, 20, 50, 100))
        axes[0, 0].set_xticks([*marks], [*marks.values()], fontsize=8)
    add_legend(figure)
    return figure
