"""GSM8K overall error histogram (the paper's Appendix C.7): log10(|ŷ - y| + 1), each loss and CE.

For every task with numbers as answers, on the common-valid subset; with the 90th percentile of the
absolute error, which the paper gives as 168.40 for CE and 150.00 for SMMD.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact
from smmd_bench.publishing.style import (
    WIDTH,
    LossStyle,
    legend_above,
    loss_label,
    loss_styles,
    model_label,
    new_figure,
)
from smmd_bench.publishing.tables import DASH, number, with_interval
from smmd_bench.results.run import RunFrames

from ._cells import in_order, mean_over_seeds, missing_note
from ._errors import (
    CommonErrors,
    Comparison,
    common_errors,
    comparisons,
    legend_columns,
    limit_note,
    panel_title,
    silent_note,
    square_root,
    subset_note,
    subset_title,
    why_none,
)
from ._paper import published, reference, rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EDGES = np.linspace(0, 6, 25)
"""Edges of the bins of log10(|ŷ - y| + 1); errors from 10^6 on are counted as outside."""
QUANTILE = 0.9
GROUPS, LOSSES = 4, 4
"""Models and tasks, and losses beside the reference, drawn at most; table and CSV have all."""
TABLE = "error_p90"


@dataclass(frozen=True)
class ErrorHistogram:
    """How far answers are off, each loss against cross-entropy on the same examples."""

    name: ClassVar[str] = "error_histogram"
    title: ClassVar[str] = "Histogram of absolute errors"
    paper: ClassVar[str] = "Appendix C.7, overall error histogram"

    def skip(self, run: RunFrames) -> str | None:
        """Two trained losses with answers to the same examples are needed."""
        return why_none(run)

    def build(self, run: RunFrames) -> Artefact:
        """One row of panels a model and task, one panel a loss beside the reference."""
        every = comparisons(run)
        found = [(comparison, common_errors(run, comparison)) for comparison in every]
        data = in_order(pd.concat([error_bins(*pair) for pair in found]), run.cells)
        table = pd.DataFrame([row for pair in found for row in _rows(*pair)])
        if (table["Paper p90"] == DASH).all():
            table = table.drop(columns="Paper p90")
        table.attrs["title"] = self.title
        caption = f"{_caption(every)} {subset_note(found)}{silent_note(run)}{_outside_note(data)}"
        caption += limit_note(every[:GROUPS], every, LOSSES) + missing_note(run.cells)
        return Artefact(caption, table, _figure(found[:GROUPS], data), data)


def error_bins(comparison: Comparison, common: CommonErrors) -> pd.DataFrame:
    """One row a loss and bin: low and high of log10(|ŷ - y| + 1), count, share of n in percent.

    The last bin of a loss has no upper end: the errors of a million and more.
    """
    parts = []
    edges = np.append(EDGES, np.inf)
    for loss in comparison.losses:
        errors = common.of(loss)["error"].to_numpy(np.float64)
        counts, _ = np.histogram(np.log10(errors + 1), edges)
        share = 100 * counts / max(1, common.n)
        part = pd.DataFrame({"low": edges[:-1], "high": edges[1:], "count": counts, "share": share})
        part = part.assign(model=comparison.model, task=comparison.task, loss=loss, n=common.n)
        parts.append(part)
    columns = ["model", "task", "loss", "n", "low", "high", "count", "share"]
    return pd.concat(parts, ignore_index=True)[columns]


def p90_by_seed(common: CommonErrors, loss: str) -> pd.Series[float]:
    """The 90th percentile of |ŷ - y| of a loss by seed, interpolated linearly between answers.

    So is the paper's, whose errors are whole numbers and whose CE has 168.40.
    """
    errors = common.of(loss).groupby("seed")["error"]
    return errors.quantile(QUANTILE)


def _rows(comparison: Comparison, common: CommonErrors) -> list[dict[str, str]]:
    """The rows of the table for one model and task, one a loss."""
    found = []
    for loss in comparison.losses:
        errors = common.of(loss)["error"]
        p90 = p90_by_seed(common, loss)
        if len(p90) == 1:
            text = with_interval(p90.iloc[0], *_interval(errors), 2)
        else:
            text = mean_over_seeds(p90, 2)
        key = {"model": comparison.model, "task": comparison.task, "loss": loss}
        found.append(
            {
                "Model": model_label(comparison.model),
                "Task": comparison.task,
                "Loss": loss_label(loss),
                "n": f"{common.n:,}",
                "Seeds": str(len(comparison.seeds)),
                "Error 0 (%)": number(100 * float((errors == 0).mean()), 1),
                "p90 of the error": text,
                "Paper p90": number(published(TABLE, **key).get("p90")),
            }
        )
    return found


def _interval(errors: pd.Series[float]) -> tuple[float, float]:
    """The 95 % interval of the 90th percentile by order statistics; NaN where n is too small."""
    from scipy.stats import quantile_test

    found = quantile_test(errors.to_numpy(np.float64), p=QUANTILE).confidence_interval()
    return float(found.low), float(found.high)


def _caption(every: list[Comparison]) -> str:
    parts = [
        "Share of answers by log10(|error| + 1), where the error is the answer given minus the "
        "true one; the scale of the shares is that of square roots, so that the tail shows beside "
        "the exact answers. Each panel has one loss over cross-entropy (grey area), or over the "
        "first loss where there is no cross-entropy. Vertical lines: the 90th percentile (p90) of "
        "the absolute error, mean over seeds.",
        "In the table: p90 with a 95 % interval by order statistics, or with the standard "
        "deviation over seeds (±).",
    ]
    paper = {loss_label(row["loss"]): row["p90"] for row in rows(TABLE)}
    if any(comparison.task == "gsm8k" for comparison in every):
        values = " and ".join(f"{value:.2f} with {loss}" for loss, value in paper.items())
        parts.append(
            f"The p90 of {reference(TABLE)} on gsm8k is {values}, on 1,319 examples of a model "
            "that it does not name."
        )
    return " ".join(parts)


def _outside_note(data: pd.DataFrame) -> str:
    """A sentence on the errors beyond the last edge; empty where there are none."""
    beyond = data[np.isinf(data["high"]) & (data["count"] > 0)]
    named = "; ".join(
        f"{model_label(str(row['model']))}, {row['task']}, {loss_label(str(row['loss']))}: "
        f"{row['count']:,}"
        for row in beyond.to_dict("records")
    )
    return f" Outside, with errors of about a million and more: {named}." if named else ""


def _figure(found: list[tuple[Comparison, CommonErrors]], data: pd.DataFrame) -> Figure:
    columns = min(LOSSES, max(len(comparison.others) for comparison, _ in found))
    figure = new_figure(max(5.5, WIDTH * columns / LOSSES), 0.5 + 2.5 * len(found))
    parts = figure.subfigures(len(found), 1, squeeze=False)[:, 0]
    styles = loss_styles(data["loss"].cat.categories)
    highest = float(data.loc[data["count"] > 0, "low"].max()) if data["count"].any() else 0.0
    last = min(EDGES[-1], max(2.0, highest + EDGES[1]))
    every = []
    for part, (comparison, common) in zip(parts, found, strict=True):
        part.suptitle(subset_title(comparison, common), fontsize=10)
        axes = part.subplots(1, columns, sharex=True, sharey=True, squeeze=False)[0]
        here = data[(data["model"] == comparison.model) & (data["task"] == comparison.task)]
        for axis, loss in zip(axes, comparison.drawn(LOSSES), strict=False):
            axis.set_title(panel_title(comparison, loss))
            for height, name in zip((0.72, 0.6), (comparison.reference, loss), strict=True):
                bins = here[here["loss"] == name]
                _outline(axis, bins, styles[name], name, filled=name == comparison.reference)
                _mark(axis, float(p90_by_seed(common, name).mean()), styles[name], height, last)
        for axis in axes[len(comparison.others) :]:
            axis.set_visible(False)
        for axis in axes:
            axis.set_xlabel("log10(|error| + 1)")
        _square_root_scale(axes[0], float(here["share"].max()))
        axes[0].set_xlim(0, last)
        axes[0].set_xticks(range(math.floor(last) + 1))
        axes[0].set_ylabel("Answers (%)")
        every += list(axes)
    legend_above(figure, every, legend_columns(found, columns))
    return figure


def _outline(axis: Axes, bins: pd.DataFrame, style: LossStyle, loss: str, *, filled: bool) -> None:
    inside = bins[np.isfinite(bins["high"])]
    edges = np.append(inside["low"].to_numpy(), inside["high"].iloc[-1])
    if filled:
        axis.stairs(inside["share"], edges, fill=True, color="#DDDDDD")
    axis.stairs(
        inside["share"],
        edges,
        color=style.colour,
        linestyle=style.line,
        linewidth=1.6,
    )
    legend = axis.plot([], [], color=style.colour, linestyle=style.line, marker=style.marker)
    legend[0].set_label(loss_label(loss))


def _mark(axis: Axes, p90: float, style: LossStyle, height: float, last: float) -> None:
    """A vertical line at a percentile, with its value beside the marker at that height."""
    if math.isnan(p90):
        return
    where = min(math.log10(p90 + 1), last)
    axis.axvline(where, color=style.colour, linestyle=style.line, linewidth=1)
    right = where < 0.6 * last
    axis.annotate(
        f"p90 {number(p90, 1)}",
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


def _square_root_scale(axis: Axes, highest: float) -> None:
    axis.set_yscale("function", functions=(square_root, np.square))
    axis.set_yticks([tick for tick in (0, 1, 5, 10, 20, 40, 60, 80, 100) if tick <= highest])
    axis.set_ylim(0, 1.1 * max(highest, 1))
