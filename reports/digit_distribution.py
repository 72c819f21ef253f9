"""Figure 2 and Appendix C.6 of the paper: the mean predicted distribution at the first digit.

Columns are losses; rows are the true first digits 1 to 9, or one: `digit_distribution[digit=5]`.
The paper draws Clock-Time, which goes before the other tasks here. Tokens of several digits are
reduced to their leading one: p(1) is the probability of all of 1, 10 to 19 and 100 to 199.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, ReportSkippedError, Run, parameter
from smmd_bench.publishing.style import (
    OTHER,
    TARGET,
    folded,
    loss_label,
    model_label,
    task_label,
)
from smmd_bench.publishing.tables import DASH, number
from smmd_bench.results.pairing import KEY, drop_short_variants, order_losses

from ._panels import (
    FEWEST,
    LIMITS,
    count_letters,
    make_blocks,
    mark_rows,
    name_pair,
    select_panels,
)
from ._results import Pair, list_pairs, select_numeric, select_pair, select_rows
from ._text import describe_row, make_artefact, make_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DIGITS = [f"p{digit}" for digit in range(10)]
CLOCK = "clock_time"
BLOCKS, LOSSES = 1, 7
"""Models and tasks, as many as a printed page holds, and losses of each; table and CSV have all."""
PITCH = 1.4
"""From row to row; a probability is at most 1."""
SHOWN = (
    "Mean probability of each digit at the first digit of the final answer, over the test examples "
    "whose answer starts with the true digit, given the true text before it. Answers that start "
    "with 0, such as 0.25, are left out. Hatched: the true digit; whiskers: one standard deviation "
    f"over examples. Tokens of several digits count as their leading one. {LIMITS}"
)


def average_first_digits(run: Run) -> pd.DataFrame:
    """One row a model, task, loss and true first digit: mean and deviation of p0 to p9, n, seeds.

    n is that of one seed; mean and deviation are over the examples of all seeds.
    """
    columns = ["answer_digit", "target_value", *DIGITS]
    probes = run.read("probes", columns, select_numeric(run)["address"])
    key = [*KEY, "digit"]
    if probes.empty:
        return pd.DataFrame(columns=[*key, "n", "seeds"])

    # Later digits of an answer are predicted from its first ones, and follow them.
    probes = order_losses(select_rows(probes, answer_digit=0), run.cells)
    # Of a million values few are different.
    values = probes["target_value"]
    digits = values.map({value: _leading_digit(value) for value in values.unique()})
    # The answer 0, and a first token 0 as that of 0.25, have no row.
    probes = probes.assign(digit=digits)[digits > 0]

    # All seeds answer the same examples, so that n is that of one.
    by_seed = probes.groupby([*key, "seed"])
    sizes = by_seed.size().groupby(key)
    counts = pd.DataFrame({"n": sizes.max(), "seeds": sizes.size()})

    probabilities = probes.groupby(key)[DIGITS]
    means = probabilities.mean()
    deviations = probabilities.std(ddof=0)
    deviations = deviations.add_suffix("_deviation")
    return counts.join(means).join(deviations).reset_index()


def _leading_digit(value: float) -> int:
    """The first digit of a number that is not 0, whatever its size: 0.05 begins with 5."""
    return int(f"{abs(value):e}"[0])


def _is_digit(value: int) -> str | None:
    return None if 1 <= value <= 9 else "must be a digit from 1 to 9"


@dataclass(frozen=True)
class DigitDistribution:
    """Where each loss puts its probability when the answer starts with a given digit."""

    name = "digit_distribution"
    title = "Digit distribution at the first digit of the answer"
    paper = "Figure 6 (Appendix C.6)"
    probed = "numeric answers"
    """What digit probes must be of, in the reason of a skip."""

    digit: int | None = parameter(
        None,
        "the true first digit to show; none: a row for each of 1 to 9",
        check=_is_digit,
    )

    def build(self, run: Run) -> Artefact:
        """One block of panels a model and task."""
        run = drop_short_variants(run.only(select_numeric(run)))
        data = average_first_digits(run)
        title, most_blocks = self.title, BLOCKS
        wanted = self.probed

        # With one row instead of nine there is room for more models and tasks.
        if self.digit is not None:
            data = select_rows(data, digit=self.digit)
            title = f"{title}, where it is {self.digit}"
            most_blocks = 4 * BLOCKS
            wanted = f"{wanted} that begin with {self.digit}"
        if data.empty:
            raise ReportSkippedError(f"no cell has digit probes of {wanted}")

        # The table has all; a mean over few examples would be drawn like one over many.
        enough = data[data["n"] >= FEWEST]
        clocks = select_rows(run.cells, task_name=CLOCK)["task"]
        drawn = select_panels(enough, most_blocks, LOSSES, first={*clocks})
        figure = _draw_figure(enough, drawn) if drawn else None
        table = make_table(_make_rows(data))
        table.attrs["title"] = title
        return make_artefact(
            run, run.cells, SHOWN, table=table, figure=figure, data=data
        )


@dataclass(frozen=True)
class DigitProbe(DigitDistribution):
    """Where each loss puts its probability when the hour starts with one given digit."""

    name = "digit_probe"
    title = "Clock-Time: digit distribution at the first digit of the hour"
    paper = "Figure 2"
    probed = "hours of clocks"

    digit: int | None = parameter(5, "the true first digit", check=_is_digit)

    def build(self, run: Run) -> Artefact:
        """One block of panels a model."""
        return super().build(run.only(select_rows(run.cells, task_name=CLOCK)))


def _make_rows(data: pd.DataFrame) -> Iterator[dict[str, str]]:
    """p(true first digit) by digit: the heights of the highlighted bars; n is their first row."""
    # All rows have all columns, in the order of the digits, whatever their first row lacks.
    headings = {digit: f"p({digit})" for digit in sorted(data["digit"].unique())}
    for pair in list_pairs(data):
        block = select_pair(data, pair)
        yield _make_size_row(block, pair, headings)

        for _, group in block.groupby("loss"):
            row = describe_row(group.iloc[0])
            row["Seeds"] = str(group["seeds"].max())
            for line in group.to_dict("records"):
                digit = line["digit"]
                row[headings[digit]] = number(line[f"p{digit}"], 3)
            yield row


def _make_size_row(
    block: pd.DataFrame, pair: Pair, headings: dict[int, str]
) -> dict[str, str]:
    """How many examples each first digit has; most data has more of the small ones."""
    row = {
        "Model": model_label(pair[0]),
        "Task": task_label(pair[1]),
        "Loss": "n",
        "Seeds": DASH,
    }
    sizes = block.groupby("digit")["n"].max()
    for digit, heading in headings.items():
        row[heading] = f"{sizes[digit]:,}" if digit in sizes else DASH
    return row


def _draw_figure(data: pd.DataFrame, drawn: dict[Pair, list[str]]) -> Figure:
    blocks = []
    titles = []
    for pair, losses in drawn.items():
        block = select_pair(data, pair)
        blocks.append(block.set_index(["digit", "loss"]))
        titles.append((name_pair(pair), block["digit"].nunique(), len(losses)))

    # A single row is drawn larger.
    height = 1.6 if data["digit"].nunique() == 1 else 0.95
    figure, grids = make_blocks(titles, 0.9, height)
    letters = count_letters(max(map(len, drawn.values())))
    for axes, block, losses in zip(grids, blocks, drawn.values(), strict=True):
        _draw_block(axes, block, losses, letters)
    return figure


def _draw_block(
    axes: Sequence[Axes], rows: pd.DataFrame, losses: list[str], letters: int
) -> None:
    """A row a true digit, a column a loss."""
    digits = sorted(rows.index.unique("digit"))
    names = []
    for digit in digits:
        n = rows.loc[[digit], "n"].max()
        names.append(f"true {digit}\nn = {n:,}")
    floors = mark_rows(axes, names, [0, 0.5, 1], PITCH)
    axes[0].set_ylim(floors[-1], 1)

    # The numbers of the first row stand below the names.
    for axis, loss in zip(axes, losses, strict=True):
        for digit, floor in zip(digits, floors, strict=True):
            # A loss without probes leaves its place empty.
            if (digit, loss) in rows.index:
                _draw_bars(axis, rows.loc[(digit, loss)], digit, floor)
        axis.set_title(folded(loss_label(loss), letters) + "\n")
        axis.set(xticks=range(10), xlabel="digit")
        axis.tick_params(axis="x", labelsize=7.5)


def _draw_bars(axis: Axes, row: pd.Series[Any], digit: int, floor: float) -> None:
    """The mean probability of each digit, with that of the true one as a number."""
    # Sums of rounded numbers may be above 1.
    means = row[DIGITS].to_numpy(dtype=float).clip(0, 1)
    spread = row[[f"{name}_deviation" for name in DIGITS]].to_numpy(dtype=float)

    # A whisker beyond 0 or 1 would be no probability.
    bars = axis.bar(
        range(10),
        means,
        0.8,
        bottom=floor,
        yerr=np.minimum(spread, [means, 1 - means]),
        color=OTHER,
        edgecolor="#4A6A80",
        linewidth=0.4,
        error_kw={"ecolor": "#444444", "elinewidth": 0.6, "alpha": 0.6},
    )
    bars[digit].set(facecolor=TARGET, edgecolor="black", hatch="////")
    # Above the row no bar is in its way.
    label = f"p({digit}) = {means[digit]:.2f}"
    axis.text(9.5, floor + 1.05, label, ha="right", fontsize=8)
