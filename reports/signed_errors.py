"""GSM8K signed errors by the last digit of the true answer (the paper's Appendix C.7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import LossStyle, add_legend, loss_label, loss_styles, model_label
from smmd_bench.publishing.tables import DASH, with_interval

from . import _error_panels as panels
from ._cells import in_order, main_losses
from ._columns import row_head
from ._error_panels import Block
from ._errors import CommonErrors, common_errors, why_none
from ._panels import FEWEST, block_grid, few_note, of_pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOUNDS = (0, 1, 3, 10, 30, 100, 300, 1000)
"""Upper ends of the bins of |ŷ - y|: exactly 0, then up to 1, up to 3 and so on, on both sides."""
WINDOW = BOUNDS[-1]
KEY = ["model", "task", "pair", "loss", "digit"]
_LAST_WHOLE = 2.0**53
"""Beyond it float64 does not hold every whole number, so that last digits are unknown."""
GROUPS = 1
"""Models and tasks drawn, which fill a printed page; the table has all, with the losses drawn."""


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
        run, left = main_losses(run)
        found = common_errors(run, ["answer", "parsed"])
        data = in_order(pd.concat(map(signed_bins, found), ignore_index=True), run.cells)
        blocks = panels.drawn_blocks(found)
        table = pd.DataFrame(_rows(blocks, data))
        table.attrs |= {"title": self.title, "values": list(table.columns[4:])}
        where = f"Outside -{WINDOW:,} to {WINDOW:,}, counted in the shares and not drawn"
        outside = panels.outside_note(where, found, data)
        notes = outside, _fractions_note(found, data), _few(data), left
        caption = panels.error_caption(run, found, GROUPS, _CAPTION, *notes)
        figure = _figure(panels.drawn_blocks(panels.with_enough(found))[:GROUPS], data)
        return Artefact(table=table, figure=figure, data=data, **caption)


_CAPTION = (
    "Share of the answers to the n examples with that last digit by the answer given minus the "
    "true one: 0 and then, to each side, up to 1, 3, 10, 30, 100, 300 and 1,000, on the scale of "
    "square roots. Each panel has one loss over the reference (grey area): cross-entropy, or the "
    "first loss where there is none. The table has the share of exact answers (%) of the drawn "
    "losses and of the reference, with the 95 % Wilson interval for one seed's n."
)


def signed_bins(common: CommonErrors) -> pd.DataFrame:
    """The signed errors of a pair's loss and of the reference, on the same examples.

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
    pair, names = common.pair, ["loss", "digit", "side"]
    every = pd.MultiIndex.from_product([(pair.reference, pair.loss), range(10), sides], names=names)
    data = cells.value_counts().reindex(every, fill_value=0).sort_index().reset_index()
    data["n"] = data.groupby(["loss", "digit"])["count"].transform("sum")
    data["share"] = 100 * data["count"] / data["n"].clip(lower=1)
    side = data["side"].to_numpy()
    far, near = ends[np.abs(side)], ends[np.maximum(np.abs(side) - 1, 0)]
    data["low"] = np.where(side > 0, near, -far) + 0.0
    data["high"] = np.where(side < 0, -near, far) + 0.0
    data = data.assign(model=pair.model, task=pair.task, pair=pair.loss, seeds=len(pair.seeds))
    return data[[*KEY, "low", "high", "seeds", "n", "count", "share"]]


def _rows(blocks: Sequence[Block], data: pd.DataFrame) -> Iterator[dict[str, str]]:
    """One row of the table a model, task, drawn loss and last digit: exact answers in percent."""
    exact = data.loc[(data["low"] == 0) & (data["high"] == 0), [*KEY, "n", "count"]]
    counts = {tuple(key): (n, count) for *key, n, count in exact.itertuples(index=False)}
    for pair in (common.pair for block in blocks for common in block):
        for digit in range(10):
            key, seeds = (pair.model, pair.task, pair.loss), len(pair.seeds)
            own, other = (counts[*key, loss, digit] for loss in (pair.loss, pair.reference))
            yield {
                **row_head(vars(pair)),
                "Last digit": str(digit),
                "n": f"{own[0]:,}",
                "Exact (%)": _exact(*own, seeds),
                f"{loss_label(pair.reference)}: exact (%)": _exact(*other, seeds),
            }


def _exact(n: int, count: int, seeds: int) -> str:
    """The share of exact answers; a second seed of the same examples does not narrow it."""
    from statsmodels.stats.proportion import proportion_confint

    if not n:
        return DASH
    low, high = proportion_confint(count / seeds, n / seeds, method="wilson")
    return with_interval(100 * count / n, 100 * low, 100 * high, 1)


def _fractions_note(found: Sequence[CommonErrors], data: pd.DataFrame) -> str:
    """A sentence on the examples without a last digit."""
    own = data[data["loss"].astype("str") == data["pair"]]
    whole = own.groupby(["model", "task", "pair"], observed=True)["count"].sum()
    left_out = [
        (name, each.n - int(whole[each.pair.model, each.pair.task, each.pair.loss]), each.n)
        for name, each in zip(panels.pair_names(found), found, strict=True)
    ]
    if not any(count for _, count, _ in left_out):
        return "Every true answer is a whole number."
    return f"Left out, as the true answer is no whole number: {panels.in_brief(left_out)}."


def _enough(data: pd.DataFrame) -> pd.DataFrame:
    """The rows of the panels that enough examples have."""
    return data[data["n"] >= FEWEST * data["seeds"]]


def _few(data: pd.DataFrame) -> str:
    """A sentence on the panels that too few examples have, by pair; empty where there are none."""
    few = data.drop(_enough(data).index).groupby(["model", "task", "pair"], observed=True)["digit"]
    names = []
    for (model, task, loss), digits in few:
        named = sorted({str(digit) for digit in digits})
        which = "all last digits" if len(named) == 10 else f"last digit {', '.join(named)}"
        names.append(f"{which} of {loss_label(str(loss))} ({model_label(str(model))}, {task})")
    return few_note(names)


def _figure(blocks: Sequence[Block], data: pd.DataFrame) -> Figure | None:
    """A row of panels for each last digit that enough examples of a drawn pair have; None: none."""
    losses = {common.pair.loss for block in blocks for common in block}
    data = _enough(data[data["pair"].isin(losses)])
    blocks = [block for block in blocks if len(_of_block(data, block))]
    if not blocks:
        return None
    shown = [sorted(_of_block(data, block)["digit"].unique()) for block in blocks]
    labels = [
        (f"{panels.block_label(block[0].pair)}: answers (%) by error", len(digits), len(block))
        for block, digits in zip(blocks, shown, strict=True)
    ]
    figure, grids = block_grid(labels, head=1.0, height=0.78)
    figure.set_layout_engine("constrained", h_pad=0.03, w_pad=0.02, hspace=0, wspace=0)
    styles = loss_styles(data["loss"].cat.categories)
    for axes, block, digits in zip(grids, blocks, shown, strict=True):
        here = _of_block(data, block)
        for column, common in zip(axes.T, block, strict=True):
            own = here[here["pair"] == common.pair.loss]
            column[0].set_title(panels.panel_title(common, common.n))
            column[-1].set_xlabel("error")
            for digit, axis in zip(digits, column, strict=True):
                _panel(axis, own[own["digit"] == digit], common.pair.reference, styles)
        for digit, axis in zip(digits, axes[:, 0], strict=True):
            axis.set_ylabel(f"last digit {digit}", rotation=0, ha="right", va="center")
        _scales(axes[0, 0], here)  # shared by all
    add_legend(figure)
    return figure


def _of_block(data: pd.DataFrame, block: Block) -> pd.DataFrame:
    pair = block[0].pair
    return of_pair(data, (pair.model, pair.task))


def _panel(axis: Axes, data: pd.DataFrame, reference: str, styles: dict[str, LossStyle]) -> None:
    """The answers of a loss and of the reference to the examples with one last digit; none of too
    few: the frame stays empty."""
    if data.empty:
        return
    inside = data[np.isfinite(data["low"]) & np.isfinite(data["high"])]
    for loss in sorted(inside["loss"].astype("str").unique(), key=lambda name: name != reference):
        shares = inside.loc[inside["loss"] == loss, "share"]
        edges = np.arange(len(shares) + 1) - len(shares) / 2
        panels.draw_shares(axis, shares, edges, styles[loss], loss == reference)
        axis.plot([], [], **styles[loss].lined(label=loss_label(loss)))
    n = f"n = {data['n'].max():,}"
    axis.text(0.02, 0.97, n, transform=axis.transAxes, va="top", fontsize=8)


def _scales(axis: Axes, data: pd.DataFrame) -> None:
    """The axes of all panels: as far to both sides as there are answers."""
    highest = float(data["share"].max())
    panels.set_share_scale(axis, highest, (0, 5, 20, 50, 100))
    axis.set_ylim(0, 1.7 * max(highest, 1))  # above the bars: n
    inside = data[(data["count"] > 0) & np.isfinite(data["low"]) & np.isfinite(data["high"])]
    last = int(np.searchsorted(BOUNDS, inside[["low", "high"]].abs().max(axis=None)))
    steps = (10, WINDOW) if last > 4 else (1, 3, 10)
    ends = {at + 0.5: end for at, end in enumerate(BOUNDS[: last + 1]) if end in steps}
    spelled = {WINDOW: "10³"}  # short: panels are narrow
    marks = {0.0: "0"} | {at: spelled.get(end, str(end)) for at, end in ends.items()}
    marks |= {-at: f"−{text}" for at, text in marks.items() if at}
    axis.set_xticks(list(marks), list(marks.values()), fontsize=8)
    axis.set_xlim(-last - 0.8, last + 0.8)
