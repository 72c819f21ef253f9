"""Did the loss help? The verdict as a table and as a picture, a forest of every loss.

One row a model, task, loss and metric: better, worse, or cannot tell. The home page shows the
picture of `make demo`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing import style
from smmd_bench.publishing.style import folded, loss_label, shortened
from smmd_bench.publishing.tables import DASH, number, with_interval
from smmd_bench.results.verdict import (
    KEY,
    NOTHING_LEARNT,
    OPEN,
    judged_metrics,
    learnt_nothing,
    main_losses,
    reference_of,
)
from smmd_bench.scoring.gain import OVER_SEEDS, RECIPES

from ._cells import NO_RESULTS, describe_unpaired, measured, of_pair, pairs, why_missing
from ._constants import describe_constants, describe_unbeaten
from ._panels import pair_name
from ._paper import reported
from ._results import digits_of
from ._text import P_HOLM, caption, notes_of, p_text, row_head

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = (
    "Differences of each task's first metric and of its error (lower is better, where both "
    "answer). Below ±x: a true difference of x is found 4 times in 5."
)

FLIPS, LINKS = "Flips", "links"
FLIPPED = "Flips: + examples that only the loss gets right, − only {}, summed over seeds."
GROUP = "Group"
GROUPED = (
    "Group compares all pairs, corrected by Holm for more tests than Verdict: losses that share a "
    "letter are not told apart there, also a worse one and CE. Each loss with a may be the best."
)
NOISE = ", other seeds"
"""What the row of cross-entropy against itself, the noise floor, is called besides."""


@dataclass(frozen=True)
class Verdict:
    """Each loss against cross-entropy, by the first metric of the task and by its error."""

    name: ClassVar[str] = "verdict"
    title: ClassVar[str] = "Did the loss help?"
    paper: ClassVar[str] = ""
    order: ClassVar[int] = 0

    def skip(self, run: Run) -> str | None:
        """A measured loss besides cross-entropy and the untuned model is needed."""
        if measured(run.cells).empty:
            return NO_RESULTS
        if "predictions" in run.manifest and run.comparisons.empty:
            return "a second file of predictions is needed"
        return None if _judged(run) else "the run has no loss besides cross-entropy"

    def build(self, run: Run) -> Artefact:
        """A row for each loss and metric, or the reason why there is no difference."""
        run, data = main_losses(run), _spelled(run.verdict)
        label = shortened(loss_label(reference_of(run)), 14)
        difference = f"Δ to {label} [95 %]"
        table = pd.DataFrame(_rows(run, data, label, difference)).fillna(DASH)
        if LINKS in table:
            links = table.pop(LINKS)
            table.attrs["links"] = {(at, FLIPS): links[at] for at in links.index[links != DASH]}
        if "predictions" in run.manifest:
            other = loss_label(reference_of(run))
            table.attrs["title"] = f"Which answers are better than those of {other}?"
            table = table.drop(columns="Seeds", errors="ignore")
        shown = ["Loss", "Metric", label, "Verdict", GROUP, difference, FLIPS, P_HOLM]
        table.attrs |= {"values": shown, "optional": ["n", "Seeds", FLIPS, P_HOLM, label]}
        said = [FLIPPED.format(label)] * (FLIPS in table) + [GROUPED] * (GROUP in table)
        said = [describe_constants(run, run.cells), describe_unbeaten(run), *said]
        words = caption(run, run.cells, SHOWN, " ".join(filter(None, said)))
        words = f"{words}\n{reported(run)}"
        return Artefact(words, table, data=None if data.empty else data, notes=notes_of(table))


def _spelled(data: pd.DataFrame) -> pd.DataFrame:
    """`run.verdict` with what a test could have found in the words: "cannot tell (below ±4.5)"."""
    said = []
    for row in data.to_dict("records"):
        known = row["verdict"] == OPEN and math.isfinite(row["smallest"])
        size = number(row["smallest"], digits_of(row["label"]))
        said.append(f"{OPEN} (below ±{size})" if known else row["verdict"])
    return data.assign(verdict=said)


def _judged(run: Run) -> set[str]:
    """The losses that a verdict is about."""
    others = set() if "predictions" in run.manifest else {"base"}
    return {*run.cells["loss"]} - {*others, reference_of(run)}


def _rows(run: Run, data: pd.DataFrame, value: str, difference: str) -> Iterator[dict[str, Any]]:
    """The rows of the table, in the order of the run; the noise floor is the last of its pair."""
    other, dead, judged = reference_of(run), learnt_nothing(run), _judged(run)
    found = dict([*data.groupby(KEY, observed=True)])
    order = run.cells.assign(noise=run.cells["loss"] == other)
    for (task, model, noise, loss), cells in order.groupby(
        ["task", "model", "noise", "loss"], observed=True
    ):
        key, head = (model, task, loss), row_head(cells.iloc[0])
        if noise:
            ranked = of_pair(data, (str(model), str(task)))
            ranked = ranked[(ranked["against_loss"] == other) & (ranked["against_letters"] != "")]
            for gain in ranked.drop_duplicates("metric").to_dict("records"):
                own = number(gain["against_value"], digits_of(gain["label"]))
                yield {**head, "Metric": gain["label"], value: own, GROUP: gain["against_letters"]}
            head["Loss"] += NOISE
        nothing = NOTHING_LEARNT * (key in dead)
        if key not in found:
            if loss in judged:
                unpaired = describe_unpaired(run, cells, other)
                yield {**head, "Verdict": why_missing(cells) or nothing or unpaired}
            continue
        for metric in judged_metrics(str(task)):
            if metric.name not in {*found[key]["metric"]}:
                said = nothing or "no value to compare"
                yield {**head, "Metric": metric.label, "Verdict": said}
        for gain in found[key].to_dict("records"):
            bounds = gain["difference"], gain["low"], gain["high"]
            yield {
                **head,
                "Metric": gain["label"],
                value: number(gain["against_value"], digits_of(gain["label"])),
                "Verdict": gain["verdict"],
                **({GROUP: gain["letters"]} if gain["letters"] and not noise else {}),
                difference: with_interval(*bounds, digits_of(gain["label"]), sign=True),
                **_flips(gain, linked=not noise),
                P_HOLM: p_text(gain["p_holm"]),
                "Seeds": str(gain["seeds"]),
                "n": f"{gain['n']:,}",
            }


def _flips(gain: dict[Any, Any], *, linked: bool) -> dict[str, Any]:
    """`+31 / −47` of a share of examples, with the fragments of the page that show them."""
    if pd.isna(gain["gained"]):
        return {}
    signed = f"+{gain['gained']:,}", f"−{gain['lost']:,}"
    found: dict[str, Any] = {FLIPS: " / ".join(signed)}
    if linked and gain["metric"] == "exact_match" and gain["interval"] != RECIPES:
        cells = {"model": gain["model"], "task": gain["task"]}
        sides = (gain["loss"], gain["against_loss"]), (gain["against_loss"], gain["loss"])
        asked = ({**cells, "right": right, "wrong": wrong} for right, wrong in sides)
        found[LINKS] = dict(
            zip(signed, ("completions?" + urlencode(a) for a in asked), strict=True)
        )
    return found


GROUPS, WIDEST = 8, 3.0
"""Models and tasks drawn at most, and how far an axis goes, in units of the largest difference or
of the median of those that could be found."""
BAND = "#D9DCDF"
COLOURS = {"better": "#1B5E20", "worse": "#A01313"}
"""Of the words; those of the losses are others."""
BANDED = "too small to be found with a probability of 80 %"
DRAWN = "difference with 95 % interval"
PICTURED = (
    "Differences on the same test examples and seeds; right of the line is better. A band ends at "
    "the smallest true difference that the test finds 4 times in 5. Intervals cover seeds and "
    "examples (filled markers) or examples alone (open); one without an end is longer "
    "than its panel."
)


@dataclass(frozen=True)
class Overview:
    """The verdict of each loss, with the difference and what could have been seen."""

    name: ClassVar[str] = "overview"
    title: ClassVar[str] = "Did the loss help? The verdict as a picture"
    paper: ClassVar[str] = "not in the paper"
    order: ClassVar[int] = 0

    def skip(self, run: Run) -> str | None:
        """A loss with results beside cross-entropy's is needed."""
        if measured(run.cells).empty:
            return NO_RESULTS
        none = (run.verdict["loss"] == run.verdict["against_loss"]).all()
        said = "no loss has results beside those of cross-entropy for the same seed"
        return said if none else None

    def build(self, run: Run) -> Artefact:
        """One row of panels a model and task: its first metric, and its error if it has one."""
        run, data = main_losses(run), _spelled(run.verdict)
        words, figure = caption(run, run.cells, PICTURED), _figure(run, data)
        return Artefact(words, figure=figure, data=data, notes=notes_of(None))


def _figure(run: Run, data: pd.DataFrame) -> Figure:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shown = [(pair, of_pair(data, pair)) for pair in pairs(data)[:GROUPS]]
    heights = [1.1 + 0.3 * here["loss"].nunique() for _, here in shown]
    figure = style.new_figure(style.WIDTH, 0.35 + sum(heights))
    parts = figure.subfigures(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
    styles = style.loss_styles(data["loss"].cat.categories)
    other = reference_of(run)
    for part, (pair, here) in zip(parts, shown, strict=True):
        metrics = [m.name for m in judged_metrics(pair[1]) if (here["metric"] == m.name).any()]
        rows = sorted(here["loss"].sort_values().unique(), key=lambda loss: loss == other)
        names = [loss_label(loss) + NOISE * (loss == other) for loss in rows]
        axes = part.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
        heading = f"{pair_name(pair)}: {here['n'].max():,} test examples"
        part.suptitle(folded(heading, 100), x=0.01, ha="left", fontsize=9.5)
        for axis, name in zip(axes, metrics, strict=True):
            _panel(axis, other, here[here["metric"] == name], rows, styles)
        axes[0].set_yticks(range(len(rows)), [shortened(name, 24) for name in names])
        axes[0].set_ylim(len(rows) - 0.5, -0.5)
    line: Any = {"color": "black", "linewidth": 1.6, "marker": "o", "markerfacecolor": "white"}
    handles = [Line2D([], [], **line, label=DRAWN), Patch(color=BAND, label=BANDED)]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8)
    return figure


def _panel(axis: Axes, other: str, here: pd.DataFrame, rows: list[str], styles: Any) -> None:
    """The rows of one metric, below the value that they are compared with."""
    gains = here.to_dict("records")
    label, lower = gains[0]["label"], gains[0]["better"] == "lower"
    other, value = shortened(loss_label(other), 14), gains[0]["against_value"]
    axis.set_title(f"{label}, {other} {number(value, digits_of(label))}", loc="left")
    ends = here[["difference", "low", "high", "smallest"]].abs().to_numpy(dtype=float)
    found = ends[:, 3][np.isfinite(ends[:, 3])]
    most = WIDEST * max(np.nanmax(ends[:, 0]), np.median(found) if len(found) else np.inf)
    bound = 1.06 * min(np.max(ends, initial=0, where=np.isfinite(ends)), most) or 1.0
    axis.set_xlim((bound, -bound) if lower else (-bound, bound))
    axis.axvline(0, color="black", linewidth=0.9)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    axis.set_xlabel(f"Δ {label} to {other}: right is better →")
    for gain in gains:
        at, how = rows.index(gain["loss"]), styles[gain["loss"]]
        if math.isfinite(gain["smallest"]):
            axis.barh(at, 2 * gain["smallest"], 0.72, -gain["smallest"], color=BAND, zorder=0)
        interval = [gain["low"], gain["high"]]
        axis.plot(interval, [at, at], "|-", color=how.colour, linewidth=1.8, markersize=7)
        filled = how.colour if gain["interval"] == OVER_SEEDS else "white"
        axis.plot(gain["difference"], at, **how.plotted(6, markerfacecolor=filled))
        verdict = str(gain["verdict"]).partition(" (")[0]
        bold: Any = {"weight": "bold", "color": COLOURS.get(verdict, "black"), "va": "center"}
        axis.text(1.03, at, verdict, transform=axis.get_yaxis_transform(), fontsize=8, **bold)
