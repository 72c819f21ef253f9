"""Appendix C.6 of the paper: the mean predicted distribution at the first digit of an answer.

For the examples whose answer starts with a given digit, the probabilities that a model gives to
the ten digits at that place, averaged. Columns are losses; rows are the true first digits 1 to 9,
or one chosen digit: `digit_distribution[digit=5]`. The paper draws them for Clock-Time, where it is
the first digit of the hour; here every task with digit probes is shown.

Tokens of several digits are reduced to their leading one, for truth and prediction alike: p(1) is
the probability of all of 1, 10 to 19 and 100 to 199.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact
from smmd_bench.parameters import parameter
from smmd_bench.publishing.style import (
    OTHER,
    TARGET,
    WIDTH,
    loss_label,
    model_label,
    new_figure,
)
from smmd_bench.publishing.tables import number
from smmd_bench.results.run import RunFrames

from ._cells import without_numbers
from ._panels import of_pair, that_fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

DIGITS = [f"p{digit}" for digit in range(10)]
GROUP = ["model", "task", "loss", "digit"]
CLOCK = "clock_time"
BLOCKS, LOSSES = 3, 7
"""Models and tasks, and losses of each, drawn at most; the CSV has all."""


def is_digit(value: int) -> str | None:
    """Check: from 1 to 9."""
    return None if 1 <= value <= 9 else "must be a digit from 1 to 9"


@dataclass(frozen=True)
class DigitDistribution:
    """Where each loss puts its probability when the answer starts with a given digit."""

    name: ClassVar[str] = "digit_distribution"
    title: ClassVar[str] = "Digit distribution at the first digit of the answer"
    paper: ClassVar[str] = "Appendix C.6"

    digit: int | None = parameter(
        None, "the true first digit to show; none: a row for each of 1 to 9", check=is_digit
    )

    def skip(self, run: RunFrames) -> str | None:
        """Without digit probes of answers that are numbers there is nothing to draw."""
        if not any((run.path / "cells").glob("*/probes.parquet")):
            return "no cell has digit probes"
        return None if any(_probed(run)) else "no task has numbers as answers"

    def build(self, run: RunFrames) -> Artefact:
        """One block of panels a model and task."""
        data = first_digit_distributions(run)
        if self.digit is None:
            return digit_artefact(run, data)
        title = f"{self.title}, where it is {self.digit}"
        return digit_artefact(run, data[data["digit"] == self.digit], title)


def digit_artefact(run: RunFrames, data: pd.DataFrame, title: str | None = None) -> Artefact:
    """Table and figure of rows of `first_digit_distributions`."""
    drawn, left_out = that_fit(data, BLOCKS, LOSSES, kept="CSV")
    caption = (
        "Mean probability of each digit at the first digit of the answer, over the n test "
        "examples whose answer starts with the true digit named at the left, normalised over "
        "the numeric tokens. Hatched bar and bold number: the true digit; whiskers: one "
        "standard deviation over examples."
    )
    seeds = int(data["seeds"].max())
    caption += f" Mean over up to {seeds} seeds." if seeds > 1 else ""
    caption += _reduction_note(run) + _clock_note(run, data)
    caption += left_out
    table = _table(data)
    if title is not None:
        table.attrs["title"] = title
    return Artefact(caption, table, _figure(data, drawn), data)


def first_digit_distributions(run: RunFrames, task: str | None = None) -> pd.DataFrame:
    """One row a model, task, loss and true first digit: mean and deviation of p0 to p9, n, seeds.

    task: its plain name; None: every task with numbers as answers.

    Where tokens hold several digits, the digit is the leading one of the target token's value.
    n is that of one seed; mean and deviation are over the examples of all seeds.
    """
    parts = []
    for cell in _probed(run):
        if task is not None and cell["task_name"] != task:
            continue
        address = str(cell["address"])
        probes = run.read("probes", ["digit", "target_value", *DIGITS], [address])
        if probes.empty:
            continue
        first = probes[probes["digit"] == 0]
        p = first[DIGITS].to_numpy(np.float64)  # [n, 10]
        values, which = np.unique(first["target_value"].to_numpy(np.float64), return_inverse=True)
        true = np.array([_leading_digit(value) for value in values])[which]  # [n]
        member = np.equal.outer(np.arange(1, 10), true).astype(np.float64)  # [9, n]
        frame = pd.DataFrame(
            {name: cell[name] for name in ("model", "task", "loss", "seed")}, range(9)
        )
        frame["digit"], frame["n"] = np.arange(1, 10), member.sum(axis=1).astype(int)
        frame[[f"sum_{name}" for name in DIGITS]] = member @ p
        frame[[f"square_{name}" for name in DIGITS]] = member @ p**2
        parts.append(frame[frame["n"] > 0])
    if not parts:
        return pd.DataFrame(columns=[*GROUP, "n", "seeds"])
    cells = pd.concat(parts, ignore_index=True)
    for column in ("model", "task", "loss"):
        cells[column] = pd.Categorical(cells[column], categories=run.cells[column].cat.categories)
    grouped = cells.groupby(GROUP, observed=True)
    total, data = grouped["n"].sum(), grouped.agg(n=("n", "max"), seeds=("seed", "nunique"))
    for name in DIGITS:
        mean = grouped[f"sum_{name}"].sum() / total
        data[name] = mean
        spread = grouped[f"square_{name}"].sum() / total - mean**2
        data[f"{name}_deviation"] = np.sqrt(spread.clip(lower=0))
    return data.reset_index()


def _probed(run: RunFrames) -> Iterator[dict[Hashable, Any]]:
    """The cells with probes; not of summaries, where a number is no answer."""
    cells = run.cells[~run.cells["task"].isin(without_numbers(run))]
    for cell in cells.to_dict("records"):
        if (run.path / "cells" / str(cell["address"]) / "probes.parquet").is_file():
            yield cell


def _leading_digit(value: float) -> int:
    return int(f"{abs(value):e}"[0])


def _reduction_note(run: RunFrames) -> str:
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


def _clock_note(run: RunFrames, data: pd.DataFrame) -> str:
    """What the first digit is where the answer is a time."""
    names = run.cells.set_index("task")["task_name"]
    clocks = {str(task) for task in data["task"].unique() if (names[[task]] == CLOCK).all()}
    if not clocks:
        return ""
    return " On Clock-Time it is the first digit of the hour; 10, 11 and 12 o'clock begin with 1."


def _table(data: pd.DataFrame) -> pd.DataFrame:
    """p(true first digit) by loss: the heights of the highlighted bars."""
    rows = []
    for (model, task, digit), group in data.groupby(["model", "task", "digit"], observed=True):
        row = {"Model": model_label(str(model)), "Task": str(task), "First digit": str(digit)}
        row["n"] = f"{int(group['n'].max()):,}"
        for loss, mean in zip(group["loss"], group[f"p{digit}"], strict=True):
            row[f"p(digit), {loss_label(str(loss))}"] = number(float(mean), 3)
        rows.append(row)
    table = pd.DataFrame(rows)
    return table.drop(columns=[c for c in ("Model", "Task") if table[c].nunique() == 1])


def _figure(data: pd.DataFrame, drawn: dict[tuple[str, str], list[str]]) -> Figure:
    rows = data["digit"].nunique()
    height = (0.85 if rows > 1 else 2.0) * rows + 0.9
    figure = new_figure(WIDTH, height * len(drawn))
    parts = figure.subfigures(len(drawn), 1, squeeze=False)[:, 0]
    for part, ((model, task), losses) in zip(parts, drawn.items(), strict=True):
        _block(part, of_pair(data, (model, task)), losses)
        part.suptitle(f"{model_label(model)}, {task}", fontsize=10)
    return figure


def _block(part: SubFigure, data: pd.DataFrame, losses: list[str]) -> None:
    digits = sorted(data["digit"].unique())
    axes = part.subplots(len(digits), len(losses), sharex=True, sharey=True, squeeze=False)
    for row, digit in zip(axes, digits, strict=True):
        for axis, loss in zip(row, losses, strict=True):
            found = data[(data["digit"] == digit) & (data["loss"] == loss)]
            if len(found):
                _bars(axis, found.iloc[0], int(digit))
        n = int(data[data["digit"] == digit]["n"].max())
        row[0].set_ylabel(f"true {digit}\nn = {n:,}", rotation=0, ha="right", va="center")
    for axis, loss in zip(axes[0], losses, strict=True):
        axis.set_title(loss_label(loss).replace("[", "\n[").replace(",", ",\n"))
    for axis in axes[-1]:
        axis.set_xticks(range(10))
        axis.set_xlabel("digit")
    axes[0][0].set_ylim(0, 1.12)
    axes[0][0].set_yticks([0, 0.5, 1])


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
