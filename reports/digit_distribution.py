"""Appendix C.6 of the paper: the mean predicted distribution at the first digit of an answer.

Columns are losses; rows are the true first digits 1 to 9, or one: `digit_distribution[digit=5]`.
The paper draws Clock-Time, which goes before the other tasks here. Tokens of several digits are
reduced to their leading one: p(1) is the probability of all of 1, 10 to 19 and 100 to 199.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run, parameter
from smmd_bench.publishing.style import OTHER, TARGET, folded, loss_label, model_label
from smmd_bench.publishing.tables import DASH, number

from . import _probes
from ._caption import when, write_caption
from ._cells import main_losses
from ._columns import row_head, row_table
from ._panels import FEWEST, Pair, block_grid, few_note, of_pair, pair_name, pairs, select_panels
from ._probes import DIGITS, first_digit_distributions, why_no_first_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLOCK = "clock_time"
BLOCKS, BLOCKS_OF_ONE_DIGIT, LOSSES = 1, 4, 7
"""Models and tasks, as many as a printed page holds, and losses of each; table and CSV have all."""
HIGHEST = 1.4
"""Where panels end: above all bars and whiskers, so that the number stands clear of them."""


def is_digit(value: int) -> str | None:
    """Check: from 1 to 9."""
    return None if 1 <= value <= 9 else "must be a digit from 1 to 9"


@dataclass(frozen=True)
class DigitDistribution:
    """Where each loss puts its probability when the answer starts with a given digit."""

    name: ClassVar[str] = "digit_distribution"
    title: ClassVar[str] = "Digit distribution at the first digit of the answer"
    paper: ClassVar[str] = "Figure 6 (Appendix C.6)"

    digit: int | None = parameter(
        None, "the true first digit to show; none: a row for each of 1 to 9", check=is_digit
    )

    def skip(self, run: Run) -> str | None:
        """Without digit probes of answers that are numbers there is nothing to draw."""
        return why_no_first_digits(run)

    def build(self, run: Run) -> Artefact:
        """One block of panels a model and task."""
        return digit_artefact(run, self.title, self.digit)


def digit_artefact(run: Run, title: str, digit: int | None = None) -> Artefact:
    """Table and figure of `first_digit_distributions`: of one true digit or all."""
    run, left = main_losses(run.only(_probes.with_numbers(run)))
    data = first_digit_distributions(run)
    if digit is not None:
        data, title = data[data["digit"] == digit], f"{title}, where it is {digit}"
    clocks = _clocks(run, data)
    enough = data[data["n"] >= FEWEST]
    blocks = BLOCKS if digit is None else BLOCKS_OF_ONE_DIGIT
    drawn, left_out = select_panels(enough, blocks, LOSSES, first=clocks)
    behind = " and ".join(_probes.rationale_shares(run))
    shown = (
        "Mean probability of each digit at the first digit of the final answer, over the test "
        "examples whose answer starts with the digit at the left (n of one seed), normalised over "
        "the numeric tokens, given the true text before it. Hatched bar and bold number: the true "
        "digit, d of p(d) in the table; whiskers: one standard deviation over examples."
    )
    caption = write_caption(
        run,
        run.cells,
        shown,
        when(data["seeds"].max() > 1, "Means are over the examples of all seeds."),
        _reduction_note(run),
        when(clocks, "Of Clock-Time it is the hour's; 10, 11 and 12 o'clock begin with 1."),
        when(
            behind,
            f"On {behind} a rationale stands before the answer: its digits are not "
            "shown, and the model is given the true one.",
        ),
        few_note(_few(data)),
        left_out,
        left,
    )
    figure = _figure(enough, drawn) if drawn else None
    return Artefact(table=row_table(_rows(data), title), figure=figure, data=data, **caption)


def _few(data: pd.DataFrame) -> Iterator[str]:
    """The rows of panels that too few examples have: `true 7 (Qwen2.5-1.5B, gsm8k)`."""
    few = data[data["n"] < FEWEST]
    for pair in pairs(few):
        digits = sorted(of_pair(few, pair)["digit"].unique())
        yield f"true {', '.join(map(str, digits))} ({pair_name(pair)})"


def _reduction_note(run: Run) -> str:
    """A sentence on how tokens of several digits are reduced to one, where a model has them."""
    sizes = {model: n for model, n in _probes.vocabulary_sizes(run).items() if n > 10}
    which = " and ".join(f"{model_label(model)} (N = {n:,})" for model, n in sizes.items())
    return which and (
        f"Numeric tokens of {which} hold several digits and are reduced to the leading one: p(1) "
        "sums 1, 10 to 19 and 100 to 199, as far as V_num has them."
    )


def _clocks(run: Run, data: pd.DataFrame) -> set[str]:
    """The tasks of the data whose answers are times: the paper draws those."""
    names = run.cells.set_index("task")["task_name"]
    return {str(task) for task in data["task"].unique() if (names[[task]] == CLOCK).all()}


def _rows(data: pd.DataFrame) -> Iterator[dict[str, str]]:
    """p(true first digit) by digit: the heights of the highlighted bars; n is their first row."""
    dashes = {f"p({digit})": DASH for digit in sorted(data["digit"].unique())}
    for pair in pairs(data):
        block, head = of_pair(data, pair), {"Model": model_label(pair[0]), "Task": pair[1]}
        counts = {f"p({digit})": f"{n:,}" for digit, n in block.groupby("digit")["n"].max().items()}
        yield {**head, "Loss": "n", "Seeds": DASH, **dashes, **counts}
        for _, group in block.groupby("loss", observed=True):
            rows = group.to_dict("records")
            means = {f"p({row['digit']})": number(row[f"p{row['digit']}"], 3) for row in rows}
            yield {**row_head(rows[0]), "Seeds": str(group["seeds"].max()), **dashes, **means}


def _figure(data: pd.DataFrame, drawn: dict[Pair, list[str]]) -> Figure:
    digits = {pair: sorted(of_pair(data, pair)["digit"].unique()) for pair in drawn}
    labels = [(pair_name(pair), len(digits[pair]), len(drawn[pair])) for pair in drawn]
    figure, grids = block_grid(labels, 0.9, 2.0 if data["digit"].nunique() == 1 else 0.85)
    for axes, (pair, losses) in zip(grids, drawn.items(), strict=True):
        block = of_pair(data, pair)
        for row, digit in zip(axes, digits[pair], strict=True):
            of_digit = block[block["digit"] == digit].set_index("loss")
            for axis, loss in zip(row, losses, strict=True):
                if loss in of_digit.index:
                    _bars(axis, of_digit.loc[loss], int(digit))
            label = f"true {digit}\nn = {max(of_digit['n'], default=0):,}"
            row[0].set_ylabel(label, rotation=0, ha="right", va="center", labelpad=7)
        for axis, loss in zip(axes[0], losses, strict=True):
            axis.set_title(folded(loss_label(loss), 12))
        for axis in axes[-1]:
            axis.set_xticks(range(10))
            axis.tick_params(axis="x", labelsize=8)
            axis.set_xlabel("digit")
        axes[0][0].set(ylim=(0, HIGHEST), yticks=[0, 0.5, 1])
    return figure


def _bars(axis: Axes, row: pd.Series[float], digit: int) -> None:
    means = row[DIGITS].to_numpy(dtype=float)
    deviations = row[[f"{name}_deviation" for name in DIGITS]].to_numpy(dtype=float)
    whiskers = {"ecolor": "#444444", "elinewidth": 0.6, "alpha": 0.6}
    bars = axis.bar(
        range(10), means, 0.8, color=OTHER, edgecolor="#4A6A80", linewidth=0.4,
        yerr=np.minimum(deviations, [means, 1 - means]), error_kw=whiskers,
    )  # fmt: skip
    bars[digit].set(facecolor=TARGET, edgecolor="black", hatch="////")
    at, side = (0.99, "right") if digit < 5 else (0.01, "left")
    bold: dict[str, Any] = {"fontweight": "bold", "fontsize": 8.5, "transform": axis.transAxes}
    axis.text(at, 1, f"{means[digit]:.2f}", ha=side, va="top", **bold)
    axis.grid(axis="x", visible=False)
