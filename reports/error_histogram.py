"""GSM8K overall error histogram (the paper's Appendix C.7): log10(|ŷ - y| + 1), each loss and CE.

For every task with numbers as answers, each loss and CE on the common-valid subset of the two; with
the 90th percentile of the absolute error, which the paper gives as 168.40 for CE and 150.00 for
SMMD.
"""

from __future__ import annotations

import math
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
from smmd_bench.publishing.tables import DASH, number, with_interval

from ._cells import in_order, mean_over_seeds, missing_note
from ._error_notes import in_brief, limit_note, outside_counts, silent_note, subset_note
from ._error_panels import legend, new_blocks, panel_title, square_root
from ._errors import CommonErrors, Comparison, Errors, Pair, common_errors, comparisons, why_none
from ._main_losses import main_losses
from ._paper import published, reference, rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EDGES = np.linspace(0, 6, 25)
"""Edges of the bins of log10(|ŷ - y| + 1); errors from 10^6 on are counted as outside."""
QUANTILE = 0.9
GROUPS = 4
"""Models and tasks that are drawn at most; the table has all, and all losses."""
TABLE = "error_p90"


@dataclass(frozen=True)
class ErrorHistogram:
    """How far answers are off, each loss against cross-entropy on the same examples."""

    name: ClassVar[str] = "error_histogram"
    title: ClassVar[str] = "Histogram of absolute errors"
    paper: ClassVar[str] = "Figure 7 (Appendix C.7)"

    def skip(self, run: Run) -> str | None:
        """Two trained losses with answers to the same examples are needed."""
        return why_none(run)

    def build(self, run: Run) -> Artefact:
        """One row of panels a model and task, one panel a loss over the reference."""
        run, left_out = main_losses(run)
        every = comparisons(run)
        found = [(comparison, common_errors(run, comparison)) for comparison in every]
        pairs = [(each, pair, errors[pair.loss]) for each, errors in found for pair in each.pairs]
        data = in_order(pd.concat([error_bins(*pair) for pair in pairs]), run.cells)
        table = _table(pairs)
        table.attrs["title"] = self.title
        caption = f"{_caption(every)} {subset_note(found)}{silent_note(run)}"
        caption += _outside_note(every, data) + limit_note(every, GROUPS)
        caption += left_out + missing_note(run.cells)
        return Artefact(caption, table, _figure(found[:GROUPS], data), data)


def error_bins(comparison: Comparison, pair: Pair, common: CommonErrors) -> pd.DataFrame:
    """The histograms of a pair's loss and of the reference, on the same examples.

    model, task   what was trained on what
    pair          the loss that stands beside the reference
    loss          whose answers these are: that loss's, or the reference's
    seeds, n      the seeds that both have, and the answers of each to what both answer
    low, high     ends of a bin of log10(|ŷ - y| + 1); the last, from a million on, has no upper end
    count, share  the answers in the bin, and their share of n in percent
    """
    parts = []
    edges = np.append(EDGES, np.inf)
    for loss in (comparison.reference, pair.loss):
        errors = common.of(loss)["error"].to_numpy(np.float64)
        counts, _ = np.histogram(np.log10(errors + 1), edges)
        share = 100 * counts / max(1, common.n)
        part = pd.DataFrame({"low": edges[:-1], "high": edges[1:], "count": counts, "share": share})
        parts.append(part.assign(loss=loss, n=common.n, seeds=len(pair.seeds)))
    data = pd.concat(parts, ignore_index=True)
    data = data.assign(model=comparison.model, task=comparison.task, pair=pair.loss)
    columns = ["model", "task", "pair", "loss", "seeds", "n", "low", "high", "count", "share"]
    return data[columns]


def p90_by_seed(common: CommonErrors, loss: str) -> pd.Series[float]:
    """The 90th percentile of |ŷ - y| of a loss by seed, interpolated linearly between answers.

    So is the paper's, whose errors are whole numbers and whose CE has 168.40.
    """
    errors = common.of(loss).groupby("seed")["error"]
    return errors.quantile(QUANTILE)


def _table(pairs: list[tuple[Comparison, Pair, CommonErrors]]) -> pd.DataFrame:
    """One row a pair, the paper's values last where it has any."""
    table = pd.DataFrame([_row(*pair) for pair in pairs]).fillna(DASH)
    fixed = ["Model", "Task", "Loss", "n", "Seeds"]
    paper = [name for name in table.columns if name.startswith("Paper")]
    values = [*table.columns.drop([*fixed, *paper]), *paper]
    values = [name for name in values if name not in paper or (table[name] != DASH).any()]
    table = table[[*fixed, *values]]
    table.attrs["values"] = ["n", *values]
    return table


def _row(comparison: Comparison, pair: Pair, common: CommonErrors) -> dict[str, str]:
    reference = comparison.reference
    other, key = loss_label(reference), {"model": comparison.model, "task": comparison.task}
    paper = [published(TABLE, **key, loss=loss).get("p90") for loss in (pair.loss, reference)]
    return {
        "Model": model_label(comparison.model),
        "Task": comparison.task,
        "Loss": loss_label(pair.loss),
        "n": f"{common.n:,}",
        "Seeds": str(len(pair.seeds)),
        "Error 0 (%)": _exact(common, pair.loss),
        "p90 of the error": _p90(common, pair.loss),
        f"{other}: error 0 (%)": _exact(common, reference),
        f"{other}: p90": _p90(common, reference),
        f"Paper p90 ({other})": "{} ({})".format(*map(number, paper)) if paper[0] else DASH,
    }


def _exact(common: CommonErrors, loss: str) -> str:
    return number(100 * float((common.of(loss)["error"] == 0).mean()), 1)


def _p90(common: CommonErrors, loss: str) -> str:
    """The percentile with its interval of one seed, or mean and deviation over several."""
    p90 = p90_by_seed(common, loss)
    digits = _digits(float(p90.mean()))
    if len(p90) == 1:
        return with_interval(p90.iloc[0], *_interval(common.of(loss)["error"]), digits)
    return mean_over_seeds(p90, digits)


def _digits(p90: float) -> int:
    """Decimals that an error of that size is given with."""
    return 1 if p90 >= 10 else 2


def _interval(errors: pd.Series[float]) -> tuple[float, float]:
    """The 95 % interval of the 90th percentile by order statistics; NaN where n is too small."""
    from scipy.stats import quantile_test

    found = quantile_test(errors.to_numpy(np.float64), p=QUANTILE).confidence_interval()
    return float(found.low), float(found.high)


def _caption(every: list[Comparison]) -> str:
    parts = [
        "Share of answers by log10(|error| + 1), where the error is the answer given minus the "
        "true one; the scale of the shares is that of square roots, so that the tail shows beside "
        "the exact answers. Each panel has one loss over the reference (grey area): cross-entropy, "
        "or the first loss where there is none. Vertical lines: the 90th percentile (p90) of the "
        "absolute error, mean over seeds.",
        "In the table: each loss and, on the same examples, the reference; p90 with a 95 % "
        "interval by order statistics, or with the standard deviation over seeds (±).",
    ]
    paper = {loss_label(row["loss"]): row["p90"] for row in rows(TABLE)}
    if any(comparison.task == "gsm8k" for comparison in every):
        values = " and ".join(f"{value:.2f} with {loss}" for loss, value in paper.items())
        parts.append(
            f"The p90 of {reference(TABLE)} on gsm8k is {values}, on 1,319 examples of a model "
            "that it does not name."
        )
    return " ".join(parts)


def _outside_note(every: list[Comparison], data: pd.DataFrame) -> str:
    """A sentence on the errors beyond the last edge; empty where there are none."""
    counts = outside_counts(every, data)
    if not any(outside for _, outside, _ in counts):
        return ""
    return f" Outside, with errors of about a million and more: {in_brief(counts)}."


def _figure(found: list[tuple[Comparison, Errors]], data: pd.DataFrame) -> Figure:
    figure, blocks = new_blocks(found, rows=1, height=2.7)
    styles = loss_styles(data["loss"].cat.categories)
    highest = float(data.loc[data["count"] > 0, "low"].max()) if data["count"].any() else 0.0
    last = min(EDGES[-1], max(2.0, highest + EDGES[1]))
    for block in blocks:
        here, reference = block.of(data), block.comparison.reference
        for (axis,), pair, common in block.columns():
            axis.set_title(panel_title(block.comparison, pair, common.n))
            axis.set_xlabel("log10(|error| + 1)")
            for height, loss in zip((0.72, 0.6), (reference, pair.loss), strict=True):
                bins = here[(here["pair"] == pair.loss) & (here["loss"] == loss)]
                _outline(axis, bins, styles[loss], loss, filled=loss == reference)
                _mark(axis, float(p90_by_seed(common, loss).mean()), styles[loss], height, last)
        _scales(block.axes[0, 0], float(here["share"].max()), last)  # shared by all
    legend(figure, blocks)
    return figure


def _outline(axis: Axes, bins: pd.DataFrame, style: LossStyle, loss: str, *, filled: bool) -> None:
    inside = bins[np.isfinite(bins["high"])]
    edges = np.append(inside["low"].to_numpy(), inside["high"].iloc[-1])
    if filled:
        axis.stairs(inside["share"], edges, fill=True, color="#DDDDDD")
    axis.stairs(inside["share"], edges, color=style.colour, linestyle=style.line, linewidth=1.6)
    (named,) = axis.plot([], [], color=style.colour, linestyle=style.line, marker=style.marker)
    named.set_label(loss_label(loss))


def _mark(axis: Axes, p90: float, style: LossStyle, height: float, last: float) -> None:
    """A vertical line at a percentile, with its value beside the marker at that height."""
    if math.isnan(p90):
        return
    where = min(math.log10(p90 + 1), last)
    axis.axvline(where, color=style.colour, linestyle=style.line, linewidth=1)
    right = where < 0.6 * last
    axis.annotate(
        f"p90 {number(p90, _digits(p90))}",
        (where, height),
        xycoords=axis.get_xaxis_transform(),
        xytext=(7 if right else -7, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        va="center",
        fontsize=8,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1},
    )
    axis.plot(
        [where], [height], style.marker, color=style.colour, markersize=7,
        transform=axis.get_xaxis_transform(),
    )  # fmt: skip


def _scales(axis: Axes, highest: float, last: float) -> None:
    axis.set_yscale("function", functions=(square_root, np.square))
    axis.set_yticks([tick for tick in (0, 1, 5, 10, 20, 40, 60, 80, 100) if tick <= highest])
    axis.set_ylim(0, 1.1 * max(highest, 1))
    axis.set_ylabel("Answers (%)")
    axis.set_xlim(0, last)
    axis.set_xticks(range(math.floor(last) + 1))
