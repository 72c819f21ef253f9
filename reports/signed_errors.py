"""GSM8K signed errors by the last digit of the true answer (the paper's Appendix C.7).

For every task with numbers as answers: ŷ - y on the common-valid subset, in one row of panels a
last digit (0 to 9) and one column a loss, each over cross-entropy.
"""

from __future__ import annotations

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
from smmd_bench.publishing.tables import DASH, with_interval
from smmd_bench.results.run import RunFrames

from ._cells import in_order, missing_note
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

BOUNDS = (0, 1, 3, 10, 30, 100, 300, 1000)
"""Upper ends of the bins of |ŷ - y|: exactly 0, then up to 1, up to 3 and so on, on both sides."""
WINDOW = BOUNDS[-1]
_LAST_WHOLE = 2.0**53
"""Beyond it float64 does not hold every whole number, so that last digits are unknown."""
GROUPS, LOSSES = 2, 4
"""Models and tasks, and losses beside the reference, drawn at most; table and CSV have all."""
KEY = ["model", "task", "loss", "digit"]


@dataclass(frozen=True)
class SignedErrors:
    """Whether answers are too small or too large, by the last digit of the true one."""

    name: ClassVar[str] = "signed_errors"
    title: ClassVar[str] = "Signed errors by the last digit of the true answer"
    paper: ClassVar[str] = "Appendix C.7, digit-sliced signed errors"

    def skip(self, run: RunFrames) -> str | None:
        """Two trained losses with answers to the same examples are needed."""
        return why_none(run)

    def build(self, run: RunFrames) -> Artefact:
        """Ten rows of panels a model and task, one column a loss beside the reference."""
        every = comparisons(run)
        found, parts, left_out = [], [], 0
        for comparison in every:
            common = common_errors(run, comparison, ["answer", "parsed"])
            bins = signed_bins(comparison, common)
            found.append((comparison, common))
            parts.append(bins)
            whole = bins.drop_duplicates(["loss", "digit"])["n"].sum() // len(comparison.losses)
            left_out += common.n - int(whole)
        data = in_order(pd.concat(parts, ignore_index=True), run.cells)
        table = _table(data, {(c.model, c.task): len(c.seeds) for c in every})
        table.attrs["title"] = self.title
        caption = f"{_CAPTION} {subset_note(found)}{silent_note(run)}{_outside_note(found, data)}"
        caption += (
            f" Left out: {left_out:,} examples whose true answer is no whole number."
            if left_out
            else " Every true answer is a whole number."
        )
        caption += limit_note(every[:GROUPS], every, LOSSES) + missing_note(run.cells)
        return Artefact(caption, table, _figure(found[:GROUPS], data), data)


_CAPTION = (
    "Share of the answers to the n examples with that last digit, by the error: the answer given "
    "minus the true one. The bins are the error 0 and then, to each side, errors up to 1, 3, 10, "
    "30, 100, 300 and 1,000; shares are on the scale of square roots. Each panel has one loss over "
    "cross-entropy (grey area), or over the first loss where there is no cross-entropy. The table "
    "has the share of exact answers (%), with the 95 % Wilson interval for one seed's n."
)


def signed_bins(comparison: Comparison, common: CommonErrors) -> pd.DataFrame:
    """One row a loss, last digit and bin: low and high of ŷ - y, n of the digit, count, share.

    A bin excludes the end that is nearer to 0; the bin from 0 to 0 holds the exact answers, and
    those without an end what is outside the window. Only whole answers have a last digit.
    """
    answer = common.frame["answer"].to_numpy(np.float64)
    whole = (answer == np.floor(answer)) & (np.abs(answer) <= _LAST_WHOLE)
    frame, answer = common.frame[whole], answer[whole]
    error = frame["parsed"].to_numpy(np.float64) - answer
    steps = np.searchsorted(BOUNDS, np.abs(error))  # 0: exact, len(BOUNDS): outside
    ends = np.array([*BOUNDS, np.inf])
    sides = np.arange(-len(BOUNDS), len(BOUNDS) + 1)  # [17]
    cells = pd.DataFrame(
        {
            "loss": frame["loss"].astype("str").to_numpy(),
            "digit": np.mod(np.abs(answer), 10).astype(int),
            "side": (np.sign(error) * steps).astype(int),
        }
    )
    counts = cells.groupby(["loss", "digit"])["side"].value_counts().unstack(fill_value=0)
    every = pd.MultiIndex.from_product([comparison.losses, range(10)], names=["loss", "digit"])
    counts = counts.reindex(index=every, columns=sides, fill_value=0)
    data = counts.melt(var_name="side", value_name="count", ignore_index=False).reset_index()
    data = data.sort_values(["loss", "digit", "side"], ignore_index=True)
    data["n"] = data.groupby(["loss", "digit"])["count"].transform("sum")
    data["share"] = 100 * data["count"] / data["n"].clip(lower=1)
    side = data["side"].to_numpy()
    far, near = ends[np.abs(side)], ends[np.maximum(np.abs(side) - 1, 0)]
    data["low"] = np.where(side > 0, near, -far) + 0.0
    data["high"] = np.where(side < 0, -near, far) + 0.0
    data = data.assign(model=comparison.model, task=comparison.task)
    return data[[*KEY, "low", "high", "n", "count", "share"]]


def _table(data: pd.DataFrame, seeds: dict[tuple[str, str], int]) -> pd.DataFrame:
    """Exact answers in percent: one row a model, task and last digit, one column a loss."""
    from statsmodels.stats.proportion import proportion_confint

    exact = data[(data["low"] == 0) & (data["high"] == 0)]
    rows = []
    for (model, task, digit), group in exact.groupby(["model", "task", "digit"], observed=True):
        row = {"Model": model_label(str(model)), "Task": str(task), "Last digit": str(digit)}
        row["n"] = f"{int(group['n'].max()):,}"
        for loss, count, n in zip(group["loss"], group["count"], group["n"], strict=True):
            a_seed = seeds[str(model), str(task)]
            row[loss_label(str(loss))] = DASH
            if n:
                low, high = proportion_confint(count / a_seed, n / a_seed, method="wilson")
                text = with_interval(100 * count / n, 100 * low, 100 * high, 1)
                row[loss_label(str(loss))] = text
        rows.append(row)
    table = pd.DataFrame(rows).fillna(DASH)
    return table.drop(columns=[c for c in ("Model", "Task") if table[c].nunique() == 1])


def _outside_note(found: list[tuple[Comparison, CommonErrors]], data: pd.DataFrame) -> str:
    outside = data[np.isinf(data["low"]) | np.isinf(data["high"])]
    counts = outside.groupby(["model", "task", "loss"], observed=True)["count"].sum()
    named = "; ".join(
        f"{c.label}: "
        + ", ".join(f"{loss_label(loss)} {counts[c.model, c.task, loss]:,}" for loss in c.losses)
        for c, _ in found
    )
    return f" Outside -{WINDOW:,} to {WINDOW:,}, counted in the shares and not drawn: {named}."


def _figure(found: list[tuple[Comparison, CommonErrors]], data: pd.DataFrame) -> Figure:
    columns = min(LOSSES, max(len(comparison.others) for comparison, _ in found))
    figure = new_figure(max(5.5, WIDTH * columns / LOSSES), 0.5 + 8.6 * len(found))
    figure.set_layout_engine("constrained", h_pad=0.03, w_pad=0.02, hspace=0, wspace=0)
    parts = figure.subfigures(len(found), 1, squeeze=False)[:, 0]
    styles = loss_styles(data["loss"].cat.categories)
    axes: list[Axes] = []
    for part, (comparison, common) in zip(parts, found, strict=True):
        part.suptitle(f"{subset_title(comparison, common)}: answers (%) by error", fontsize=10)
        here = data[(data["model"] == comparison.model) & (data["task"] == comparison.task)]
        axes += _block(part, comparison, here, styles, columns)
    legend_above(figure, axes, legend_columns(found, columns))
    return figure


def _block(
    part: SubFigure,
    comparison: Comparison,
    data: pd.DataFrame,
    styles: dict[str, LossStyle],
    columns: int,
) -> list[Axes]:
    axes = part.subplots(10, columns, sharex=True, sharey=True, squeeze=False)
    for digit, row in enumerate(axes):
        here = data[data["digit"] == digit]
        n = int(here["n"].max())
        row[0].set_ylabel(f"last digit {digit}\nn = {n:,}", rotation=0, ha="right", va="center")
        for axis, loss in zip(row, comparison.drawn(LOSSES), strict=False):
            _outline(axis, here, comparison.reference, styles, filled=True)
            _outline(axis, here, loss, styles, filled=False)
        for axis in row[len(comparison.others) :]:
            axis.set_visible(False)
    for axis, loss in zip(axes[0], comparison.drawn(LOSSES), strict=False):
        axis.set_title(panel_title(comparison, loss))
    for axis in axes[-1]:
        axis.set_xlabel("error")
    _scales(axes[0][0], float(data["share"].max()))  # shared by all
    return list(axes.ravel())


def _scales(axis: Axes, highest: float) -> None:
    axis.set_yscale("function", functions=(square_root, np.square))
    axis.set_yticks([tick for tick in (0, 5, 20, 50, 100) if tick <= highest])
    axis.set_ylim(0, 1.15 * max(highest, 1))
    ends = {at + 0.5: end for at, end in enumerate(BOUNDS) if end in (10, WINDOW)}
    marks = {0.0: "0"} | {at: str(end) for at, end in ends.items()}
    marks |= {-at: f"−{end}" for at, end in ends.items()}
    axis.set_xticks(list(marks), list(marks.values()), fontsize=8)
    axis.set_xlim(-len(BOUNDS) - 0.8, len(BOUNDS) + 0.8)


def _outline(
    axis: Axes, data: pd.DataFrame, loss: str, styles: dict[str, LossStyle], *, filled: bool
) -> None:
    inside = data[(data["loss"] == loss) & np.isfinite(data["low"]) & np.isfinite(data["high"])]
    edges = np.arange(len(inside) + 1) - len(inside) / 2
    style = styles[loss]
    if filled:
        axis.stairs(inside["share"], edges, fill=True, color="#DDDDDD")
    axis.stairs(
        inside["share"], edges, color=style.colour, linestyle=style.line, linewidth=1.4,
        label=loss_label(loss),
    )  # fmt: skip
