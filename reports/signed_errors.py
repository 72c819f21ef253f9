"""GSM8K signed errors by the last digit of the true answer (the paper's Appendix C.7)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from smmd_bench.publishing.style import add_legend, loss_label, shortened
from smmd_bench.publishing.tables import DASH, with_interval

from ._cells import Pair, of_pair
from ._panels import LIMITS, block_grid, pair_name, select_panels
from ._text import row_head
from .error_histogram import KEY, LOSSES, SUBSET, ErrorHistogram, draw_shares, scale_shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUNDS = (0, 1, 3, 10, 30, 100, 300, 1000)
"""Upper ends of the bins of |ŷ - y|: exactly 0, then up to 1, up to 3 and so on, on both sides."""
SHOWN = (
    "Share of the answers to the n examples with that last digit by the answer minus the true one, "
    "over the reference (grey area). Answers further off are counted and not drawn; true answers "
    f"that are no whole number are left out. {SUBSET} {LIMITS}"
)


class SignedErrors(ErrorHistogram):
    """Whether answers are too small or too large, by the last digit of the true one."""

    name = "signed_errors"
    title = "Signed errors by the last digit of the true answer"
    paper = "Figure 8 (Appendix C.7)"
    shown = SHOWN
    read = ("answer", "parsed")
    groups = 1  # they fill a printed page

    def bins(self, common: pd.DataFrame) -> pd.DataFrame:
        """The signed errors of each loss and of its reference, on the same examples.

        `digit` is the last digit of the true answer (of whole answers only), `low` and `high` are
        the ends of a bin without the one nearer to 0. `n` are the answers of each with that digit,
        `share` is in percent of it.
        """
        answer = common["answer"].astype("float64")
        error = common["parsed"].astype("float64") - answer
        steps = np.searchsorted(BOUNDS, error.abs())  # 0: exact, len(BOUNDS): outside
        frame = common.assign(digit=answer.abs() % 10, side=np.sign(error) * steps)
        frame = frame[(answer % 1 == 0) & (answer.abs() <= 2**53)]  # last digits are known
        sides = np.arange(-len(BOUNDS), len(BOUNDS) + 1)  # [17]
        every = pd.MultiIndex.from_product([range(10), sides], names=["digit", "side"])
        keys = common.groupby(KEY, observed=True)["seed"].nunique().reset_index(name="seeds")
        data = keys.merge(every.to_frame(index=False), how="cross")
        counts = frame.value_counts([*KEY, "digit", "side"]).reset_index()
        data = data.merge(counts, how="left").fillna({"count": 0}).astype({"count": int})
        data["n"] = data.groupby([*KEY, "digit"], observed=True)["count"].transform("sum")
        data["share"] = 100 * data["count"] / data["n"].clip(lower=1)
        side, ends = data["side"].to_numpy(), np.array([*BOUNDS, np.inf])
        far, near = ends[np.abs(side)], ends[np.maximum(np.abs(side) - 1, 0)]
        data["low"] = np.where(side > 0, near, -far) + 0.0
        data["high"] = np.where(side < 0, -near, far) + 0.0
        return data[[*KEY, "digit", "low", "high", "seeds", "n", "count", "share"]]

    def rows(self, common: pd.DataFrame, data: pd.DataFrame) -> Iterator[dict[str, str]]:
        """One row of the table a model, task, drawn loss and last digit: exact answers."""
        exact = data[(data["low"] == 0) & (data["high"] == 0)]
        drawn = select_panels(exact.assign(loss=exact["pair"]), None, LOSSES)
        for pair, losses in drawn.items():
            here: Any = of_pair(exact, pair).set_index(["pair", "loss", "digit"])
            for loss, digit in product(losses, range(10)):
                (reference,) = {*here.loc[loss].index.unique("loss")} - {loss}
                own, other = here.loc[(loss, loss, digit)], here.loc[(loss, reference, digit)]
                yield {
                    **row_head({"model": pair[0], "task": pair[1], "loss": loss}),
                    "Last digit": str(digit),
                    "n": f"{own['n']:,}",
                    "Exact (%)": _exact(own),
                    f"{loss_label(reference)}: exact (%)": _exact(other),
                }

    def figure(
        self, common: pd.DataFrame, data: pd.DataFrame, drawn: dict[Pair, list[str]]
    ) -> Figure:
        """A row of panels for each last digit that enough examples of a drawn loss have."""
        ((pair, losses),) = drawn.items()
        data = of_pair(data, pair)
        data = data[data["pair"].isin(losses)]
        digits, ends = sorted(data["digit"].unique()), len(BOUNDS)
        label = f"{pair_name(pair)}: answers (%) by error"
        figure, (axes,) = block_grid([(label, len(digits), len(losses))], head=1.0, height=0.78)
        inside = data[np.isfinite(data["low"]) & np.isfinite(data["high"])]
        for row, digit in zip(axes, digits, strict=True):
            row[0].set_ylabel(f"last digit {digit}", rotation=0, ha="right", va="center")
            for axis, loss in zip(row, losses, strict=True):
                own = inside[(inside["pair"] == loss) & (inside["digit"] == digit)]
                if len(own):
                    draw_shares(axis, own, np.arange(2 * ends) - ends + 0.5)
                    n = f"n = {own['n'].iloc[0]:,}"
                    axis.text(0.02, 0.97, n, transform=axis.transAxes, va="top", size=8)
        for axis, loss in zip(axes[0], losses, strict=True):
            axis.set_title(shortened(loss_label(loss), 16))
        for axis in axes[-1]:
            axis.set_xlabel("error")
        scale_shares(axes[0, 0], data["share"].max(), (0, 5, 20, 50, 100))
        marks = {0: "0", BOUNDS.index(10) + 0.5: "10", BOUNDS.index(1000) + 0.5: "10³"}
        marks |= {-at: f"−{text}" for at, text in marks.items() if at}
        axes[0, 0].set_xticks([*marks], [*marks.values()], fontsize=8)
        add_legend(figure)
        return figure


def _exact(row: pd.Series[Any]) -> str:
    """The share of exact answers; a second seed of the same examples does not narrow it."""
    from statsmodels.stats.proportion import proportion_confint

    if not row["n"]:
        return DASH
    per_seed = row["count"] / row["seeds"], row["n"] / row["seeds"]
    low, high = proportion_confint(*per_seed, method="wilson")
    return with_interval(row["share"], 100 * low, 100 * high, 1)
