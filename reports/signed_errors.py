"""GSM8K signed errors by the last digit of the true answer (the paper's Appendix C.7).

For every task with numbers as answers: ŷ - y in one row of panels a last digit (0 to 9) and one
column a loss, each over cross-entropy on the common-valid subset of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import (
    LossStyle,
    loss_label,
    loss_styles,
    model_label,
)
from smmd_bench.publishing.tables import DASH, with_interval

from ._cells import in_order, missing_note
from ._error_notes import (
    in_brief,
    limit_note,
    outside_counts,
    pair_name,
    silent_note,
    subset_note,
)
from ._error_panels import LOSSES, legend, new_blocks, panel_title, square_root
from ._errors import CommonErrors, Comparison, Errors, Pair, common_errors, comparisons, why_none
from ._main_losses import main_losses

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOUNDS = (0, 1, 3, 10, 30, 100, 300, 1000)
"""Upper ends of the bins of |ŷ - y|: exactly 0, then up to 1, up to 3 and so on, on both sides."""
WINDOW = BOUNDS[-1]
KEY = ["model", "task", "pair", "loss", "digit"]
_LAST_WHOLE = 2.0**53
"""Beyond it float64 does not hold every whole number, so that last digits are unknown."""
GROUPS = 2
"""Models and tasks that are drawn at most; the table has all, with the losses that are drawn."""


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
        run, left_out = main_losses(run)
        every = comparisons(run)
        found = [(each, common_errors(run, each, ["answer", "parsed"])) for each in every]
        bins = [
            signed_bins(each, pair, errors[pair.loss])
            for each, errors in found
            for pair in each.pairs
        ]
        data = in_order(pd.concat(bins, ignore_index=True), run.cells)
        table = _table(every, data)
        table.attrs["title"] = self.title
        caption = f"{_CAPTION} {subset_note(found)}{silent_note(run)}"
        caption += _outside_note(every, data)
        caption += _fractions_note(found, data) + limit_note(every, GROUPS)
        caption += left_out + missing_note(run.cells)
        return Artefact(caption, table, _figure(found[:GROUPS], data), data)


_CAPTION = (
    "Share of the answers to the n examples with that last digit, by the error: the answer given "
    "minus the true one. The bins are the error 0 and then, to each side, errors up to 1, 3, 10, "
    "30, 100, 300 and 1,000; shares are on the scale of square roots. Each panel has one loss over "
    "the reference (grey area): cross-entropy, or the first loss where there is none. The table "
    "has the losses that are drawn, with the share of exact answers (%) of each and, on the same "
    "examples, of the reference, with the 95 % Wilson interval for one seed's n."
)


def signed_bins(comparison: Comparison, pair: Pair, common: CommonErrors) -> pd.DataFrame:
    """The signed errors of a pair's loss and of the reference, on the same examples.

    model, task   what was trained on what
    pair          the loss that stands beside the reference
    loss          whose answers these are: that loss's, or the reference's
    digit         the last digit of the true answer; only whole answers have one
    low, high     ends of a bin of ŷ - y, which excludes the end that is nearer to 0; the bin from
                  0 to 0 holds the exact answers, those without an end what is outside the window
    seeds, n      the seeds that both have, and the answers of each with that last digit
    count, share  the answers in the bin, and their share of n in percent
    """
    answer = common.frame["answer"].to_numpy(np.float64)
    whole = (answer == np.floor(answer)) & (np.abs(answer) <= _LAST_WHOLE)
    frame, answer = common.frame[whole], answer[whole]
    error = frame["parsed"].to_numpy(np.float64) - answer
    steps = np.searchsorted(BOUNDS, np.abs(error))  # 0: exact, len(BOUNDS): outside
    ends = np.array([*BOUNDS, np.inf])
    sides = np.arange(-len(BOUNDS), len(BOUNDS) + 1)  # [17]
    cells = pd.DataFrame(
        {
            "loss": frame["loss"].astype("str").to_numpy(),
            "digit": np.mod(np.abs(answer), 10).astype(int),
            "side": (np.sign(error) * steps).astype(int),
        }
    )
    losses = (comparison.reference, pair.loss)
    counts = cells.groupby(["loss", "digit"])["side"].value_counts().unstack(fill_value=0)
    every = pd.MultiIndex.from_product([losses, range(10)], names=["loss", "digit"])
    counts = counts.reindex(index=every, columns=sides, fill_value=0)
    data = counts.melt(var_name="side", value_name="count", ignore_index=False).reset_index()
    data = data.sort_values(["loss", "digit", "side"], ignore_index=True)
    data["n"] = data.groupby(["loss", "digit"])["count"].transform("sum")
    data["share"] = 100 * data["count"] / data["n"].clip(lower=1)
    side = data["side"].to_numpy()
    far, near = ends[np.abs(side)], ends[np.maximum(np.abs(side) - 1, 0)]
    data["low"] = np.where(side > 0, near, -far) + 0.0
    data["high"] = np.where(side < 0, -near, far) + 0.0
    key = {"model": comparison.model, "task": comparison.task, "pair": pair.loss}
    data = data.assign(**key, seeds=len(pair.seeds))
    return data[[*KEY, "low", "high", "seeds", "n", "count", "share"]]


def _table(every: list[Comparison], data: pd.DataFrame) -> pd.DataFrame:
    """One row a model, task, drawn loss and last digit: exact answers in percent."""
    exact = data.loc[(data["low"] == 0) & (data["high"] == 0), [*KEY, "n", "count"]]
    counts = {tuple(key): (n, count) for *key, n, count in exact.itertuples(index=False)}
    rows = []
    for each in every:
        for pair in each.drawn(LOSSES):
            for digit in range(10):
                key = (each.model, each.task, pair.loss)
                own, other = (counts[*key, loss, digit] for loss in (pair.loss, each.reference))
                rows.append(
                    {
                        "Model": model_label(each.model),
                        "Task": each.task,
                        "Loss": loss_label(pair.loss),
                        "Last digit": str(digit),
                        "n": f"{own[0]:,}",
                        "Exact (%)": _exact(*own, len(pair.seeds)),
                        f"{loss_label(each.reference)}: exact (%)": _exact(*other, len(pair.seeds)),
                    }
                )
    table = pd.DataFrame(rows).fillna(DASH)
    table.attrs["values"] = [*table.columns.drop(["Model", "Task", "Loss", "Last digit"])]
    return table


def _exact(n: int, count: int, seeds: int) -> str:
    """The share of exact answers; a second seed of the same examples does not narrow it."""
    from statsmodels.stats.proportion import proportion_confint

    if not n:
        return DASH
    low, high = proportion_confint(count / seeds, n / seeds, method="wilson")
    return with_interval(100 * count / n, 100 * low, 100 * high, 1)


def _outside_note(every: list[Comparison], data: pd.DataFrame) -> str:
    counts = in_brief(outside_counts(every, data))
    return f" Outside -{WINDOW:,} to {WINDOW:,}, counted in the shares and not drawn: {counts}."


def _fractions_note(found: list[tuple[Comparison, Errors]], data: pd.DataFrame) -> str:
    """A sentence on the examples without a last digit."""
    own = data[data["loss"].astype("str") == data["pair"]]
    whole = own.groupby(["model", "task", "pair"], observed=True)["count"].sum().to_dict()
    left_out = [
        (
            pair_name(each, loss, len(found) > 1),
            common.n - int(whole[each.model, each.task, loss]),
            common.n,
        )
        for each, errors in found
        for loss, common in errors.items()
    ]
    if not any(count for _, count, _ in left_out):
        return " Every true answer is a whole number."
    return f" Left out, as the true answer is no whole number: {in_brief(left_out)}."


def _figure(found: list[tuple[Comparison, Errors]], data: pd.DataFrame) -> Figure:
    figure, blocks = new_blocks(found, rows=10, height=8.8, note=": answers (%) by error")
    figure.set_layout_engine("constrained", h_pad=0.03, w_pad=0.02, hspace=0, wspace=0)
    styles = loss_styles(data["loss"].cat.categories)
    for block in blocks:
        here = block.of(data)
        for column, pair, _ in block.columns():
            own = here[here["pair"] == pair.loss]
            whole = int(own["count"].sum()) // 2  # answers of the loss and of the reference
            column[0].set_title(panel_title(block.comparison, pair, whole))
            for digit, axis in enumerate(column):
                _panel(axis, own[own["digit"] == digit], block.comparison.reference, styles)
            column[-1].set_xlabel("error")
        for digit, axis in enumerate(block.axes[:, 0]):
            axis.set_ylabel(f"last digit {digit}", rotation=0, ha="right", va="center")
        _scales(block.axes[0, 0], float(here["share"].max()))  # shared by all
    legend(figure, blocks)
    return figure


def _panel(axis: Axes, data: pd.DataFrame, reference: str, styles: dict[str, LossStyle]) -> None:
    """The answers of a loss and of the reference to the examples with one last digit."""
    inside = data[np.isfinite(data["low"]) & np.isfinite(data["high"])]
    for loss in sorted(inside["loss"].astype("str").unique(), key=lambda name: name != reference):
        shares = inside.loc[inside["loss"] == loss, "share"]
        edges = np.arange(len(shares) + 1) - len(shares) / 2
        if loss == reference:
            axis.stairs(shares, edges, fill=True, color="#DDDDDD")
        axis.stairs(
            shares, edges, color=styles[loss].colour, linestyle=styles[loss].line, linewidth=1.4,
            label=loss_label(loss),
        )  # fmt: skip
    n = f"n = {data['n'].max():,}"
    axis.text(0.02, 0.97, n, transform=axis.transAxes, va="top", fontsize=8)


def _scales(axis: Axes, highest: float) -> None:
    axis.set_yscale("function", functions=(square_root, np.square))
    axis.set_yticks([tick for tick in (0, 5, 20, 50, 100) if tick <= highest])
    axis.set_ylim(0, 1.7 * max(highest, 1))  # above the bars: n
    ends = {at + 0.5: end for at, end in enumerate(BOUNDS) if end in (10, WINDOW)}
    spelled = {WINDOW: "10³"}  # short: panels are narrow
    marks = {0.0: "0"} | {at: spelled.get(end, str(end)) for at, end in ends.items()}
    marks |= {-at: f"−{text}" for at, text in marks.items() if at}
    axis.set_xticks(list(marks), list(marks.values()), fontsize=8)
    axis.set_xlim(-len(BOUNDS) - 0.8, len(BOUNDS) + 0.8)
