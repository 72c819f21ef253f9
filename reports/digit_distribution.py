"""Figure 2 and Appendix C.6 of the paper: the mean predicted distribution at the first digit.

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
from smmd_bench.results.verdict import KEY, in_order, main_losses

from ._cells import Pair, of_pair, pairs, with_numbers
from ._panels import FEWEST, LIMITS, block_grid, pair_name, select_panels
from ._text import caption, notes_of, row_head, row_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIGITS = [f"p{digit}" for digit in range(10)]
CLOCK = "clock_time"
BLOCKS, LOSSES = 1, 7
"""Models and tasks, as many as a printed page holds, and losses of each; table and CSV have all."""
SHOWN = (
    "Mean probability of each digit at the first digit of the final answer, over the test examples "
    "whose answer starts with the digit at the left, given the true text before it. Hatched: the "
    "true digit; whiskers: one standard deviation over examples. Tokens of several digits count as "
    f"their leading one. {LIMITS}"
)


def first_digit_distributions(run: Run) -> pd.DataFrame:
    """One row a model, task, loss and true first digit: mean and deviation of p0 to p9, n, seeds.

    n is that of one seed; mean and deviation are over the examples of all seeds.
    """
    columns = ["answer_digit", "target_value", *DIGITS]
    found = run.read("probes", columns, with_numbers(run)["address"])
    key = [*KEY, "digit"]
    if found.empty:
        return pd.DataFrame(columns=[*key, "n", "seeds"])
    found = in_order(found[found["answer_digit"] == 0], run.cells)
    leading = {value: int(f"{abs(value):e}"[0]) for value in found["target_value"].unique()}
    found = found.assign(digit=found["target_value"].map(leading)).query("digit > 0")
    groups = found.groupby(key, observed=True)
    sizes = found.groupby([*key, "seed"], observed=True).size().groupby(key, observed=True)
    data = pd.DataFrame({"n": sizes.max(), "seeds": sizes.size()})
    deviations = groups[DIGITS].std(ddof=0).add_suffix("_deviation")
    return data.join(groups[DIGITS].mean()).join(deviations).reset_index()


def _is_digit(value: int) -> str | None:
    return None if 1 <= value <= 9 else "must be a digit from 1 to 9"


@dataclass(frozen=True)
class DigitDistribution:
    """Where each loss puts its probability when the answer starts with a given digit."""

    name: ClassVar[str] = "digit_distribution"
    title: ClassVar[str] = "Digit distribution at the first digit of the answer"
    paper: ClassVar[str] = "Figure 6 (Appendix C.6)"

    digit: int | None = parameter(
        None, "the true first digit to show; none: a row for each of 1 to 9", check=_is_digit
    )

    def skip(self, run: Run) -> str | None:
        """Without digit probes of answers that are numbers there is nothing to draw."""
        if first_digit_distributions(run).empty:
            return "no cell has digit probes of answers that are numbers"
        return None

    def build(self, run: Run) -> Artefact:
        """One block of panels a model and task."""
        run = main_losses(run.only(with_numbers(run)))
        data, title, digit = first_digit_distributions(run), self.title, self.digit
        if digit is not None:
            data, title = data[data["digit"] == digit], f"{title}, where it is {digit}"
        clocks = {*map(str, run.cells.loc[run.cells["task_name"] == CLOCK, "task"])}
        enough, blocks = data[data["n"] >= FEWEST], BLOCKS if digit is None else 4 * BLOCKS
        drawn = select_panels(enough, blocks, LOSSES, first=clocks)
        figure = _figure(enough, drawn) if drawn else None
        table = row_table(_rows(data), title)
        return Artefact(caption(run, run.cells, SHOWN), table, figure, data, notes_of(table))


@dataclass(frozen=True)
class DigitProbe(DigitDistribution):
    """Where each loss puts its probability when the hour starts with one given digit."""

    name: ClassVar[str] = "digit_probe"
    title: ClassVar[str] = "Clock-Time: digit distribution at the first digit of the hour"
    paper: ClassVar[str] = "Figure 2"

    digit: int | None = parameter(5, "the true first digit", check=_is_digit)

    def skip(self, run: Run) -> str | None:
        """Probed clocks with such an hour are needed."""
        data = first_digit_distributions(_of_clocks(run))
        known = (data["digit"] == self.digit).any()
        return None if known else f"no probed clock shows an hour that begins with {self.digit}"

    def build(self, run: Run) -> Artefact:
        """One block of panels a model."""
        return super().build(_of_clocks(run))


def _of_clocks(run: Run) -> Run:
    return run.only(run.cells[run.cells["task_name"] == CLOCK])


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
            yield {**row_head(rows[0]), "Seeds": str(group["seeds"].max()), **means}


def _figure(data: pd.DataFrame, drawn: dict[Pair, list[str]]) -> Figure:
    digits = {pair: sorted(of_pair(data, pair)["digit"].unique()) for pair in drawn}
    labels = [(pair_name(pair), len(digits[pair]), len(drawn[pair])) for pair in drawn]
    figure, grids = block_grid(labels, 0.9, 2.0 if data["digit"].nunique() == 1 else 0.85)
    how: Any = {"color": OTHER, "edgecolor": "#4A6A80", "linewidth": 0.4}
    how |= {"error_kw": {"ecolor": "#444444", "elinewidth": 0.6, "alpha": 0.6}}
    bold: Any = {"fontweight": "bold", "fontsize": 8.5, "va": "top"}
    for axes, (pair, losses) in zip(grids, drawn.items(), strict=True):
        rows = of_pair(data, pair).set_index(["digit", "loss"])
        for line, digit in zip(axes, digits[pair], strict=True):
            label = f"true {digit}\nn = {rows.loc[[digit], 'n'].max():,}"
            line[0].set_ylabel(label, rotation=0, ha="right", va="center", labelpad=7)
            for axis, loss in zip(line, losses, strict=True):
                if (digit, loss) not in rows.index:
                    continue
                row = rows.loc[(digit, loss)]
                means = row[DIGITS].to_numpy(dtype=float)
                spread = row[[f"{name}_deviation" for name in DIGITS]].to_numpy(dtype=float)
                bars = axis.bar(
                    range(10), means, 0.8, yerr=np.minimum(spread, [means, 1 - means]), **how
                )
                bars[digit].set(facecolor=TARGET, edgecolor="black", hatch="////")
                place, side = (0.99, "right") if digit < 5 else (0.01, "left")
                axis.text(
                    place, 1, f"{means[digit]:.2f}", ha=side, transform=axis.transAxes, **bold
                )
        for axis, loss in zip(axes[0], losses, strict=True):
            axis.set_title(folded(loss_label(loss), 12))
        for axis in axes[-1]:
            axis.set(xticks=range(10), xlabel="digit")
        axes[0, 0].set(ylim=(0, 1.4), yticks=[0, 0.5, 1])  # the number stands clear of all bars
    return figure
