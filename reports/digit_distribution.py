"""Appendix C.6 of the paper: the mean predicted distribution at the first digit of an answer.

For the examples whose answer starts with a given digit, the probabilities that a model gives to
the ten digits at that place, averaged. Columns are losses; rows are the true first digits 1 to 9,
or one chosen digit: `digit_distribution[digit=5]`. The paper draws them for Clock-Time, where it is
the first digit of the hour; here every task with digit probes is in the table, and Clock-Time is
drawn before the others. Where a rationale stands before the answer, as in GSM8K, its digits do not
count, and the model is given the true one.

Tokens of several digits are reduced to their leading one, for truth and prediction alike: p(1) is
the probability of all of 1, 10 to 19 and 100 to 199.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run, parameter
from smmd_bench.publishing.style import (
    OTHER,
    TARGET,
    WIDTH,
    loss_label,
    model_label,
    new_figure,
)
from smmd_bench.publishing.tables import DASH, number

from ._cells import missing_note
from ._figure_notes import n_and_seeds, trained
from ._first_digits import DIGITS, first_digit_distributions, why_no_first_digits
from ._main_losses import main_losses
from ._panels import of_pair, that_fit
from ._probes import rationale_shares, with_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

CLOCK = "clock_time"
BLOCKS, LOSSES = 2, 7
"""Models and tasks, and losses of each, drawn at most; table and CSV have all."""
LETTERS = 12
"""Letters of a line above a panel."""


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
    run = run.only(with_numbers(run))
    run, left_to_ablations = main_losses(run)
    data = first_digit_distributions(run)
    if digit is not None:
        data, title = data[data["digit"] == digit], f"{title}, where it is {digit}"
    clocks = _clocks(run, data)
    drawn, left_out = that_fit(data, BLOCKS, LOSSES, first=clocks)
    caption = (
        "Mean probability of each digit at the first digit of the final answer, over the test "
        "examples whose answer starts with the true digit named at the left (their number beside "
        "it, of one seed), normalised over the numeric tokens. The model is given the true text "
        "before the digit: nothing is parsed here. Hatched bar and bold number: the true digit, "
        "which is d of p(d) in the table; whiskers: one standard deviation over examples."
    )
    if trained(run.cells)["seed"].nunique() > 1:
        caption += " Means are over the examples of all seeds."
    caption += n_and_seeds(run, run.cells)
    caption += _reduction_note(run)
    if clocks:
        caption += (
            " On Clock-Time it is the first digit of the hour; 10, 11 and 12 o'clock begin with 1."
        )
    if behind := rationale_shares(run):
        caption += (
            f" On {' and '.join(behind)} a rationale stands before the answer: its digits are not "
            "shown, and the model is given the true one."
        )
    caption += left_out + left_to_ablations + missing_note(run.cells)
    table = _table(data)
    table.attrs["title"] = title
    return Artefact(caption, table, _figure(data, drawn), data)


def _reduction_note(run: Run) -> str:
    """A sentence on how tokens of several digits are reduced to one, where a model has them."""
    found = {}
    for model, cells in run.cells.groupby("model", observed=True):
        for address in cells["address"]:
            vectors = run.read("probes", ["vector"], [address])
            known = [] if "vector" not in vectors else [*vectors["vector"].dropna()[:1]]
            if known:
                found[str(model)] = len(known[0])
                break
    several = {model: size for model, size in found.items() if size > 10}
    if not several:
        return ""
    which = " and ".join(f"{model_label(model)} (N = {n:,})" for model, n in several.items())
    return (
        f" Numeric tokens of {which} hold several digits and are reduced to the leading one: p(1) "
        "sums 1, 10 to 19 and 100 to 199, as far as V_num has them."
    )


def _clocks(run: Run, data: pd.DataFrame) -> set[str]:
    """The tasks of the data whose answers are times: the paper draws those."""
    names = run.cells.set_index("task")["task_name"]
    return {str(task) for task in data["task"].unique() if (names[[task]] == CLOCK).all()}


def _table(data: pd.DataFrame) -> pd.DataFrame:
    """p(true first digit) by digit: the heights of the highlighted bars; n is their first row."""
    digits, rows = sorted(data["digit"].unique()), []
    for (model, task), block in data.groupby(["model", "task"], observed=True):
        pair = {"Model": model_label(str(model)), "Task": str(task)}
        n = block.groupby("digit")["n"].max()
        counts = {f"p({digit})": f"{n[digit]:,}" if digit in n else DASH for digit in digits}
        rows.append({**pair, "Loss": "n", "Seeds": DASH, **counts})
        for loss, group in block.groupby("loss", observed=True):
            p = {int(row["digit"]): row[f"p{row['digit']}"] for row in group.to_dict("records")}
            means = {f"p({digit})": number(p.get(digit), 3) for digit in digits}
            seeds = str(group["seeds"].max())
            rows.append({**pair, "Loss": loss_label(str(loss)), "Seeds": seeds, **means})
    table = pd.DataFrame(rows)
    return table.drop(columns=[c for c in ("Model", "Task") if table[c].nunique() == 1])


def _figure(data: pd.DataFrame, drawn: dict[tuple[str, str], list[str]]) -> Figure:
    rows = data["digit"].nunique()
    height = (0.85 if rows > 1 else 2.0) * rows + 0.9
    figure = new_figure(WIDTH, height * len(drawn))
    parts = figure.subfigures(len(drawn), 1, squeeze=False)[:, 0]
    most = max(len(losses) for losses in drawn.values())
    for part, ((model, task), losses) in zip(parts, drawn.items(), strict=True):
        _block(part, of_pair(data, (model, task)), losses, most)
        part.suptitle(f"{model_label(model)}, {task}", fontsize=10)
    return figure


def _block(part: SubFigure, data: pd.DataFrame, losses: list[str], columns: int) -> None:
    digits = sorted(data["digit"].unique())
    axes = part.subplots(len(digits), columns, sharex=True, sharey=True, squeeze=False)
    for axis in axes[:, len(losses) :].ravel():
        axis.set_axis_off()
    axes = axes[:, : len(losses)]
    for row, digit in zip(axes, digits, strict=True):
        for axis, loss in zip(row, losses, strict=True):
            found = data[(data["digit"] == digit) & (data["loss"] == loss)]
            if len(found):
                _bars(axis, found.iloc[0], int(digit))
        n = int(data[data["digit"] == digit]["n"].max())
        row[0].set_ylabel(
            f"true {digit}\nn = {n:,}", rotation=0, ha="right", va="center", labelpad=7
        )
    for axis, loss in zip(axes[0], losses, strict=True):
        axis.set_title(_broken(loss_label(loss)))
    for axis in axes[-1]:
        axis.set_xticks(range(10))
        axis.tick_params(axis="x", labelsize=8)
        axis.set_xlabel("digit")
    axes[0][0].set_ylim(0, 1.12)
    axes[0][0].set_yticks([0, 0.5, 1])


def _broken(label: str) -> str:
    """The label of a loss in lines that fit above a panel: `SMMD`, `[sigma=1+`, `1.5+2]`."""
    lines = [""]
    for part in re.split(r"(?<=[,+])|(?=\[)", label):
        if lines[-1] and len(lines[-1] + part) > LETTERS:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _bars(axis: Axes, row: pd.Series[float], digit: int) -> None:
    means = row[DIGITS].to_numpy(dtype=float)
    deviations = row[[f"{name}_deviation" for name in DIGITS]].to_numpy(dtype=float)
    bars = axis.bar(range(10), means, width=0.8, color=OTHER, edgecolor="#4A6A80", linewidth=0.4)
    bars[digit].set(facecolor=TARGET, edgecolor="black", hatch="////")
    low, high = np.minimum(deviations, means), np.minimum(deviations, 1 - means)
    axis.errorbar(
        range(10), means, yerr=[low, high], fmt="none", ecolor="#444444", elinewidth=0.6, alpha=0.6
    )
    axis.text(
        0.99 if digit < 5 else 0.01,
        0.97,
        f"{means[digit]:.2f}",
        transform=axis.transAxes,
        ha="right" if digit < 5 else "left",
        va="top",
        fontweight="bold",
        fontsize=8.5,
    )
    axis.grid(axis="x", visible=False)
