"""GSM8K overall error histogram (the paper's Appendix C.7): log10(|ŷ - y| + 1) of each loss.

Every trained loss stands beside a reference on its common-valid subset: the seeds that both have,
and of each the examples that both answer with a number. So no third loss changes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, ReportSkippedError, Run
from smmd_bench.publishing.style import (
    add_legend,
    folded,
    loss_label,
    loss_styles,
    shortened,
)
from smmd_bench.publishing.tables import DASH, number, with_interval
from smmd_bench.results.pairing import drop_short_variants

from ._common_errors import (
    count_in_units,
    describe_units,
    order_pairs,
    select_common_errors,
)
from ._panels import (
    FEWEST,
    LIMITS,
    count_letters,
    make_blocks,
    name_pair,
    select_panels,
)
from ._paper import find_published
from ._results import PAIR, Pair, select_pair, select_rows
from ._text import describe_row, drop_dashes_below, format_mean, make_artefact

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOSSES = 5
"""Losses over the reference that are drawn at most."""
KEY = [*PAIR, "pair", "loss"]
TICKS = (0, 1, 10, 100, 10**3, 10**4, 10**5)
"""Errors that the axis names, in units of the last place."""
POWERS = {10**3: "10³", 10**4: "10⁴", 10**5: "10⁵", 10**6: "10⁶"}
EDGES = np.linspace(0, 6, 25)
"""Edges of the bins of log10(|ŷ - y| + 1); errors from 10^6 on are in one bin more."""
DRAWN = np.append(EDGES, 6.25)
"""The same with an end for that bin."""
LAST_BIN = DRAWN[-2:].mean()
"""The middle of that bin."""
QUANTILE = 0.9
P90 = "p90: 90th percentile"
SUBSET = (
    "Each loss stands over cross-entropy (or the first loss where there is none) on the examples "
    "that both answer with a number, on the seeds that both have."
)
SHOWN = (
    "Share of the n answers, of all seeds, by the absolute error, on a scale of "
    "log10(|error| + 1), over the reference (grey area). p90: the 90th percentile of the absolute "
    "error, mean over seeds; of one seed with an interval by order statistics, where there are "
    f"enough answers. Errors beyond the axis are in a last bin (≥). {SUBSET} {LIMITS}"
)


@dataclass(frozen=True)
class ErrorHistogram:
    """How far answers are off, each loss against cross-entropy on the same examples.

    `read` are further columns of the scores, `place` those that name a bin, of which all but the
    last name its histogram, `written` those of the CSV. So many `groups` (a model with a task) are
    drawn.
    """

    name = "error_histogram"
    title = "Histogram of absolute errors"
    paper = "Figure 7 (Appendix C.7)"
    caption_text = SHOWN
    read: ClassVar[tuple[str, ...]] = ()
    place: ClassVar[list[str]] = ["bin"]
    written: ClassVar[list[str]] = [*KEY, "seeds", "n", "low", "high", "count", "share"]
    groups = 4

    def build(self, run: Run) -> Artefact:
        """A block of panels a model and task, a column a loss over the reference; one table."""
        run = drop_short_variants(run)
        common = select_common_errors(run, self.read)
        if common.empty:
            raise ReportSkippedError(
                "no model and task has numbers of two trained losses on the same seed"
            )

        data = order_pairs(self.bins(common), run)
        rows = self.rows(common, data)
        table = pd.DataFrame(rows).fillna(DASH)
        table = drop_dashes_below(table, "Paper")

        # Seeds answer the same examples: more of them make no panel of a small test set.
        enough = data[data["n"] >= FEWEST * data["seeds"]]
        # A panel is of a loss beside the reference, whose answers are in the rows, too.
        by_panel = enough.assign(loss=enough["pair"])
        drawn = select_panels(by_panel, self.groups, LOSSES)
        figure = self.figure(common, enough, drawn) if drawn else None
        text = f"{self.caption_text} {describe_units(common['unit'].unique())}".strip()
        return make_artefact(
            run, run.cells, text, table=table, figure=figure, data=data
        )

    def bins(self, common: pd.DataFrame) -> pd.DataFrame:
        """The histograms of each loss and of its reference, on the same examples.

        `low` and `high` are the ends of a bin. `n` are the answers of each, `share` is in percent.
        """
        by_loss = common.groupby(KEY)
        seeds = by_loss["seed"].nunique()

        place = [*KEY, *self.place]
        answers = self.find_bins(common)
        counts = answers.groupby(place).size()

        # Bins without an answer are drawn as empty.
        data = seeds.reset_index(name="seeds")
        data = data.merge(self.list_bins(), how="cross")
        data = data.merge(counts.reset_index(name="count"), how="left")
        counts_of_all = data["count"].fillna(0)
        data["count"] = counts_of_all.astype(int)

        # Shares, and not counts, since subsets differ in size from loss to loss.
        by_histogram = data.groupby(place[:-1])
        data["n"] = by_histogram["count"].transform("sum")
        data["share"] = 100 * data["count"] / data["n"].clip(lower=1)
        return data[self.written]

    def list_bins(self) -> pd.DataFrame:
        """The bins of log10(|ŷ - y| + 1) with their ends, the last without an upper end."""
        edges = np.append(EDGES, np.inf)
        return pd.DataFrame(
            {"bin": range(len(EDGES)), "low": edges[:-1], "high": edges[1:]}
        )

    def find_bins(self, common: pd.DataFrame) -> pd.DataFrame:
        """The answers with their bin."""
        counts = count_in_units(common["error"], common["unit"])
        places = np.searchsorted(EDGES, np.log10(counts + 1), side="right") - 1
        return common.assign(bin=places)

    def rows(
        self, common: pd.DataFrame, data: pd.DataFrame
    ) -> Iterator[dict[str, str]]:
        """One row of the table a model, task and loss."""
        for key, answers in common.groupby([*PAIR, "pair"]):
            model, task, loss = map(str, key)
            reference = find_compared_loss(answers)
            # Both on the same examples: another subset of either would change its percentile.
            of_loss = select_rows(answers, loss=loss)
            of_reference = select_rows(answers, loss=reference)
            other = loss_label(reference)
            row = describe_row({"model": model, "task": task, "loss": loss})
            yield {
                **row,
                "n": f"{len(of_loss):,}",
                "Seeds": str(of_loss["seed"].nunique()),
                "Error 0 (%)": _format_exact(of_loss),
                "p90 of the error": _format_p90(of_loss),
                f"{other}: error 0 (%)": _format_exact(of_reference),
                f"{other}: p90": _format_p90(of_reference),
                f"Paper p90 ({other})": _format_published(model, task, loss, reference),
            }

    def figure(
        self, common: pd.DataFrame, data: pd.DataFrame, drawn: dict[Pair, list[str]]
    ) -> Figure | None:
        """A row of panels for each model and task."""
        blocks = []
        for pair, losses in drawn.items():
            blocks.append((name_pair(pair), 1, len(losses)))
        figure, grids = make_blocks(blocks, head=0.6, height=2.3)
        letters = count_letters(max(map(len, drawn.values())))

        by_seed = common.groupby([*KEY, "seed"])
        p90 = by_seed["error"].quantile(QUANTILE)
        units = common.groupby(PAIR)["unit"].first()

        for axes, (pair, losses) in zip(grids, drawn.items(), strict=True):
            block = select_pair(data, pair)
            for axis, loss in zip(axes, losses, strict=True):
                panel = select_rows(block, pair=loss)
                _draw_panel(axis, panel, p90[(*pair, loss)], units[pair], letters)

            is_drawn = block["pair"].isin(losses)
            _scale_axes(axes[0], block[is_drawn], units[pair], len(losses))

        # Drawn for the legend alone.
        axis.plot([], [], "|", color="black", markersize=11, label=P90)
        add_legend(figure)
        return figure


def _scale_axes(axis: Axes, block: pd.DataFrame, unit: float, columns: int) -> None:
    """The scale of a block of panels, which share their axes, from those that are drawn."""
    highest = max(block["share"].max(), 1)

    # On a scale of square roots a tail of 1 % shows beside 50 % of exact answers. A logarithmic
    # one has no 0, and most bins of a good loss are empty.
    root = (lambda share: np.sqrt(np.clip(share, 0, None)), np.square)
    axis.set_yscale("function", functions=root)
    ticks = (0, 1, 5, 10, 20, 40, 60, 80, 100)
    axis.set_yticks([tick for tick in ticks if tick <= highest])
    axis.set_ylabel("Answers (%),\nsquare-root scale")
    axis.set_ylim(0, 1.06 * highest)

    # Of an answer beyond the last edge the bin has no end.
    farthest = block.loc[block["count"] > 0, "high"].max()
    last = max(1.1, min(farthest, DRAWN[-1]))
    axis.set_xlim(0, last)
    _mark_errors(axis, unit, columns)


def _mark_errors(axis: Axes, unit: float, columns: int) -> None:
    """Ticks at errors of so many units, for which the axis has limits."""
    last = axis.get_xlim()[1]
    marks = {}
    for count in TICKS:
        # On a long axis 1 would touch 0.
        if count != 1 or last < 3:
            place = np.log10(count + 1)
            marks[place] = _name_error(count * unit)
    if last > EDGES[-1]:
        marks[EDGES[-1]] = f"≥{_name_error(10**6 * unit)}"

    places = [place for place in marks if place <= last]
    # A narrow panel has room for every second label.
    if columns > 3 and last > 5:
        places = places[::2]
    axis.set_xticks(places, [marks[place] for place in places])


def _name_error(error: float) -> str:
    """0.01, 1, 10³."""
    # Hundredths a thousand times are 10.0.
    return POWERS.get(round(error), f"{error:g}")


def _draw_panel(
    axis: Axes, data: pd.DataFrame, p90: pd.Series[float], unit: float, letters: int
) -> None:
    """The histograms of a loss and its reference, with the mean over seeds of their `p90`."""
    styles = loss_styles(data["loss"].cat.categories)
    reference = find_compared_loss(data)
    loss = str(data["pair"].iloc[0])
    grey = select_rows(data, loss=reference)["share"]
    axis.stairs(grey, DRAWN, fill=True, color="#DDDDDD")

    # As in the table: over each seed, and then their mean.
    means = p90.groupby("loss", observed=True).mean()
    # The reference comes first: a loss that is equal to it must not be hidden.
    for name in (reference, loss):
        line = styles[name].lined()
        shares = select_rows(data, loss=name)["share"]
        axis.stairs(shares, DRAWN, linewidth=1.5, **line)
        place = np.log10(means[name] / unit + 1)
        axis.axvline(min(place, LAST_BIN), linewidth=1, **line)

        # A legend shows an outline as a box; the line of an empty plot stands there instead.
        axis.plot([], [], label=loss_label(name), **line)

    # Both have answers to the same examples, and so one n.
    n = data["n"].iloc[0]
    other = shortened(loss_label(reference), 8)
    of_reference = f"({other} {_format_error(means[reference])})"
    p90_line = f"p90 {_format_error(means[loss])} {of_reference}"
    label = folded(loss_label(loss), letters)
    axis.set_title(f"{label}\nn = {n:,}\n{p90_line}")
    axis.set_xlabel("absolute error")


def find_compared_loss(answers: pd.DataFrame) -> str:
    """The loss that a loss is beside, in rows of both."""
    is_reference = answers["loss"].astype("str") != answers["pair"].astype("str")
    return str(answers.loc[is_reference, "loss"].iloc[0])


def _format_exact(answers: pd.DataFrame) -> str:
    is_exact = answers["error"] == 0
    return number(100 * float(is_exact.mean()), 1)


def _format_p90(answers: pd.DataFrame) -> str:
    """The 90th percentile of |ŷ - y|, interpolated linearly as in the paper. One seed has an
    interval; several have their mean and deviation."""
    from scipy.stats import quantile_test

    p90 = answers.groupby("seed")["error"].quantile(QUANTILE)
    digits = _count_decimals(p90.mean())
    if len(p90) != 1:
        return format_mean(p90, digits)

    # Of few answers the interval has no end (NaN), and the text has none.
    interval = quantile_test(answers["error"], p=QUANTILE).confidence_interval()
    return with_interval(p90.iloc[0], float(interval.low), float(interval.high), digits)


def _format_error(error: float) -> str:
    return number(error, _count_decimals(error))


def _count_decimals(error: float) -> int:
    # Large errors need few, and small ones would all be 0 without.
    return 1 if error >= 10 else 2


def _format_published(model: str, task: str, loss: str, reference: str) -> str:
    """The paper's values of a loss and of the reference: `12.00 (14.00)`."""
    texts = []
    for name in (loss, reference):
        values = find_published("error_p90", model, task, name)
        texts.append(number(values.get("p90")))

    of_loss, of_reference = texts
    return DASH if of_loss == DASH else f"{of_loss} ({of_reference})"
