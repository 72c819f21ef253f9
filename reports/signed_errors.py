"""GSM8K signed errors by the last digit of the true answer (the paper's Appendix C.7)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from smmd_bench.publishing.style import GREY, folded, loss_label, loss_styles
from smmd_bench.publishing.tables import DASH, with_interval

from ._common_errors import count_in_units
from ._panels import (
    LIMITS,
    count_letters,
    make_blocks,
    mark_rows,
    name_pair,
    select_panels,
)
from ._results import Pair, select_pair, select_rows
from ._text import describe_row
from .error_histogram import KEY, LOSSES, SUBSET, ErrorHistogram, find_compared_loss

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOUNDS = (0, 1, 3, 10, 30, 100, 300, 1000)
"""Upper ends of the bins of |ŷ - y|: exactly 0, then up to 1, up to 3 and so on, on both sides."""
PLACES = np.arange(1 - len(BOUNDS), len(BOUNDS))
"""The sides that are drawn, [15]; those outside are not."""
STEPS = (1, 2, 3, 5, 10, 20, 30, 50, 100)
"""Where a tick may be, in points."""
SHOWN = (
    "The n answers, of all seeds, to examples with that last digit, by the answer minus the true "
    "one: a bar above the line is a larger share than the reference's. Whiskers: 95 % over "
    "examples, one test a bar and not corrected. Answers further off are counted and not drawn; "
    f"true answers that are no whole number of units are left out. {SUBSET} {LIMITS}"
)


class SignedErrors(ErrorHistogram):
    """Whether answers are too small or too large, by the last digit of the true one."""

    name = "signed_errors"
    title = "Signed errors by the last digit of the true answer"
    paper = "Figure 8 (Appendix C.7)"
    caption_text = SHOWN
    read = ("answer", "parsed")
    place: ClassVar = ["digit", "side"]
    written: ClassVar = [*KEY, "digit", "low", "high", "seeds", "n", "count", "share"]
    # Ten last digits of one model and task fill a printed page.
    groups = 1

    def list_bins(self) -> pd.DataFrame:
        """The bins of each last digit: side 0 is an exact answer, ±len(BOUNDS) are outside.

        `low` and `high` are the ends of a bin without the one nearer to 0.
        """
        sides = np.arange(-len(BOUNDS), len(BOUNDS) + 1)  # [17]
        steps = np.abs(sides)
        ends = np.array([*BOUNDS, np.inf])
        outer = ends[steps]
        steps_inwards = np.maximum(steps - 1, 0)
        inner = ends[steps_inwards]

        # Adding 0 makes 0 of the -0 of an exact answer.
        is_too_large = sides > 0
        low = np.where(is_too_large, inner, -outer) + 0.0
        is_too_small = sides < 0
        high = np.where(is_too_small, -inner, outer) + 0.0
        bins = pd.DataFrame({"side": sides, "low": low, "high": high})

        # Each digit has all of them.
        digits = pd.DataFrame({"digit": range(10)})
        return digits.merge(bins, how="cross")

    def find_bins(self, common: pd.DataFrame) -> pd.DataFrame:
        """The answers to whole numbers of units, with the last digit and the bin of the error."""
        unit = common["unit"]
        answer = common["answer"].astype("float64")
        parsed = common["parsed"].astype("float64")
        errors = count_in_units(parsed - answer, unit)
        steps = np.searchsorted(BOUNDS, errors.abs())
        sides = np.sign(errors) * steps

        # The last digit is that of the answer in units.
        counts = count_in_units(answer, unit)
        sizes = counts.abs()
        frame = common.assign(digit=sizes % 10, side=sides)
        # Beyond 2^53 a float64 does not know its last digit.
        is_whole = (sizes % 1 == 0) & (sizes <= 2**53)
        return frame[is_whole]

    def rows(
        self, common: pd.DataFrame, data: pd.DataFrame
    ) -> Iterator[dict[str, str]]:
        """One row of the table a model, task, drawn loss and last digit: exact answers."""
        exact = select_rows(data, low=0, high=0)
        drawn = select_panels(exact.assign(loss=exact["pair"]), None, LOSSES)
        for pair, losses in drawn.items():
            block = select_pair(exact, pair)
            for loss, digit in product(losses, range(10)):
                rows = select_rows(block, pair=loss, digit=digit)
                reference = find_compared_loss(rows)
                of_loss = select_rows(rows, loss=loss).iloc[0]
                of_reference = select_rows(rows, loss=reference).iloc[0]
                yield {
                    **describe_row({"model": pair[0], "task": pair[1], "loss": loss}),
                    "Last digit": str(digit),
                    "n": f"{of_loss['n']:,}",
                    "Exact (%)": _format_exact(of_loss),
                    f"{loss_label(reference)}: exact (%)": _format_exact(of_reference),
                }

    def figure(
        self, common: pd.DataFrame, data: pd.DataFrame, drawn: dict[Pair, list[str]]
    ) -> Figure:
        """A row of panels for each last digit that enough examples of a drawn loss have."""
        # One model and task fills a page.
        ((pair, losses),) = drawn.items()
        data = select_pair(data, pair)
        data = data[data["pair"].isin(losses)]
        answers = self.find_bins(select_pair(common, pair))
        digits = sorted(data["digit"].unique())
        other = loss_label(find_compared_loss(data))
        title = f"{name_pair(pair)}: share of answers minus that of {other}, in points"
        # Ten rows must fit on a page.
        figure, (axes,) = make_blocks(
            [(title, len(digits), len(losses))], head=1.0, height=0.7
        )

        names = []
        panels = {}
        for digit in digits:
            of_digit = select_rows(data, digit=digit)
            names.append(f"last digit {digit}\n{_describe_sizes(of_digit['n'])}")
            # A digit may have too few examples of one loss alone.
            for loss in of_digit["pair"].unique():
                rows = select_rows(answers, pair=loss, digit=digit)
                panels[digit, loss] = _compare_bins(rows, str(loss))

        # The longest whisker decides how far rows are apart; ticks near its end would meet others.
        ends = [np.abs(panel).sum(axis=0) for panel in panels.values()]
        farthest = max(1.25, np.max(ends))
        pitch = 2.4 * farthest
        tick = max(step for step in STEPS if step <= 0.8 * farthest)
        floors = mark_rows(axes, names, [-tick, 0, tick], pitch)
        axes[0].set_ylim(floors[-1] - pitch / 2, pitch / 2)

        styles = loss_styles(answers["loss"].cat.categories)
        letters = count_letters(len(losses))
        unit = answers["unit"].iloc[0]
        place = "" if unit == 1 else f" (in {unit:g})"
        for (digit, loss), panel in panels.items():
            axis = axes[losses.index(loss)]
            floor = floors[digits.index(digit)]
            _draw_bars(axis, panel, styles[loss].colour, floor)
        for axis, loss in zip(axes, losses, strict=True):
            axis.set_title(folded(loss_label(loss), letters))
            axis.set_xlabel(f"answer − truth{place}")
            _mark_errors(axis)
        return figure


def _describe_sizes(sizes: pd.Series[int]) -> str:
    """`n = 429 to 430`: losses differ by answers without a number."""
    least, most = sizes.min(), sizes.max()
    return f"n = {most:,}" if least == most else f"n = {least:,} to {most:,}"


def _compare_bins(answers: pd.DataFrame, loss: str) -> NDArray[np.float64]:
    """The differences of a loss in each bin and half of their intervals, in points: [2, 15]."""
    reference = find_compared_loss(answers)
    sides = answers.pivot(index=["seed", "uid"], columns="loss", values="side")

    # 1: the answer of the loss alone is in the bin, −1: that of the reference alone.
    is_in = sides[loss].to_numpy()[:, None] == PLACES  # [answers, 15]
    was_in = sides[reference].to_numpy()[:, None] == PLACES
    changes = 100.0 * is_in - 100.0 * was_in
    differences = changes.mean(axis=0)

    # A second seed of the same examples does not narrow it.
    examples = sides.index.unique("uid").size
    half = 1.96 * changes.std(axis=0) / np.sqrt(examples)
    return np.array([differences, half])


def _draw_bars(
    axis: Axes, panel: NDArray[np.float64], colour: str, floor: float
) -> None:
    """Bars around the line at `floor`."""
    differences, half = panel
    axis.bar(
        PLACES,
        differences,
        1,
        bottom=floor,
        yerr=half,
        color=colour,
        error_kw={"ecolor": GREY, "elinewidth": 0.8},
    )


def _mark_errors(axis: Axes) -> None:
    """Ticks at 0, 10 and 1000 on both sides; all bins are equally wide."""
    # Ticks are at edges of bins, half a step from their middle.
    positive = {BOUNDS.index(10) + 0.5: "10", BOUNDS.index(1000) + 0.5: "10³"}
    negative = {-place: f"−{text}" for place, text in positive.items()}
    marks = {0: "0", **positive, **negative}
    axis.set_xticks([*marks], [*marks.values()], fontsize=8)


def _format_exact(row: pd.Series[Any]) -> str:
    """The share of exact answers; a second seed of the same examples does not narrow it."""
    from statsmodels.stats.proportion import proportion_confint

    # Some last digits are of no answer.
    if not row["n"]:
        return DASH
    per_seed = (row["count"] / row["seeds"], row["n"] / row["seeds"])
    low, high = proportion_confint(*per_seed, method="wilson")
    return with_interval(row["share"], 100 * low, 100 * high, 1)
