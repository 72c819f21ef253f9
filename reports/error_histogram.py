"""GSM8K overall error histogram (the paper's Appendix C.7): log10(|ŷ - y| + 1) of each loss.

Every trained loss stands beside a reference on its common-valid subset: the seeds that both have,
and of each the examples that both answer with a number. So no third loss changes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import LossStyle, add_legend, loss_label, loss_styles, shortened
from smmd_bench.publishing.tables import DASH, number, with_interval
from smmd_bench.results.opponents import REFERENCE
from smmd_bench.results.verdict import in_order, main_losses

from ._cells import PAIR, Pair, measured, numeric_tasks, of_pair, why_no_numbers
from ._panels import FEWEST, LIMITS, block_grid, pair_name, select_panels
from ._paper import published
from ._text import caption, mean_over_seeds, notes_of, row_head, without_dashes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOSSES = 5
"""Losses over the reference that are drawn at most."""
KEY = [*PAIR, "pair", "loss"]
EDGES = np.linspace(0, 6, 25)
"""Edges of the bins of log10(|ŷ - y| + 1); errors from 10^6 on are counted as outside."""
QUANTILE = 0.9
SUBSET = (
    "Each loss stands over cross-entropy (or the first loss where there is none) on the examples "
    "that both answer with a number, on the seeds that both have."
)
SHOWN = (
    "Share of answers by log10(|error| + 1), over the reference (grey area). Vertical lines: the "
    "90th percentile (p90) of the absolute error, mean over seeds; of one seed with an interval by "
    f"order statistics. {SUBSET} {LIMITS}"
)


def common_errors(run: Run, columns: Sequence[str] = ()) -> pd.DataFrame:
    """One row an answer to an example that a loss and the reference both answer with a number.

    `pair` is the loss beside the reference, `loss` whose answer it is, `error` is |ŷ - y|. The
    reference is cross-entropy, or the first loss where the run has none or did not train.
    """
    cells = measured(run.cells)
    cells = cells[(cells["loss"] != "base") & cells["task"].isin(numeric_tasks(run))]
    found = []
    for _, group in cells.groupby(PAIR, observed=True):
        valid = run.read("scores", ["uid", "error", *columns], group["address"])
        valid = valid[valid["error"].notna()]
        losses = [str(loss) for loss in group["loss"].sort_values().unique()]
        trained_here = "predictions" not in run.manifest
        reference = REFERENCE if trained_here and REFERENCE in losses else losses[0]
        for loss in losses:
            here = valid[valid["loss"].isin([loss, reference])]
            here = here[here.duplicated(["seed", "uid"], keep=False)]  # an answer of either
            found.append(here.assign(pair=loss, error=here["error"].astype("float64")))
    return with_pairs(pd.concat(found), run) if found else pd.DataFrame()


def with_pairs(data: pd.DataFrame, run: Run) -> pd.DataFrame:
    """The frame with model, task, pair and loss as categoricals in the order of the run."""
    data = in_order(data, run.cells)
    return data.assign(pair=pd.Categorical(data["pair"], run.cells["loss"].cat.categories))


@dataclass(frozen=True)
class ErrorHistogram:
    """How far answers are off, each loss against cross-entropy on the same examples."""

    name: ClassVar[str] = "error_histogram"
    title: ClassVar[str] = "Histogram of absolute errors"
    paper: ClassVar[str] = "Figure 7 (Appendix C.7)"
    shown: ClassVar[str] = SHOWN
    read: ClassVar[tuple[str, ...]] = ()
    groups: ClassVar[int] = 4

    def skip(self, run: Run) -> str | None:
        """Two trained losses with answers to the same examples are needed."""
        if (none := why_no_numbers(run)) is None and common_errors(run).empty:
            return "no model and task has numbers of two trained losses on a common seed"
        return none

    def build(self, run: Run) -> Artefact:
        """A block of panels a model and task, a column a loss over the reference; one table."""
        run = main_losses(run)
        common = common_errors(run, self.read)
        data = with_pairs(self.bins(common), run)
        table = pd.DataFrame([*self.rows(common, data)]).fillna(DASH)
        table = without_dashes(table, [name for name in table if str(name).startswith("Paper")])
        table.attrs["title"] = self.title
        enough = data[data["n"] >= FEWEST * data["seeds"]]
        drawn = select_panels(enough.assign(loss=enough["pair"]), self.groups, LOSSES)
        figure = self.figure(common, enough, drawn) if drawn else None
        return Artefact(caption(run, run.cells, self.shown), table, figure, data, notes_of(table))

    def bins(self, common: pd.DataFrame) -> pd.DataFrame:
        """The histograms of each loss and of its reference, on the same examples.

        `low` and `high` are the ends of a bin of log10(|ŷ - y| + 1), the last without an upper end.
        `n` are the answers of each, `share` is in percent of it.
        """
        edges, parts = np.append(EDGES, np.inf), {}
        for key, own in common.groupby(KEY, observed=True):
            part = pd.DataFrame({"low": edges[:-1], "high": edges[1:]})
            part["count"] = np.histogram(np.log10(own["error"] + 1), edges)[0]
            parts[key] = part.assign(n=len(own), seeds=own["seed"].nunique())
        data = pd.concat(parts, names=KEY).reset_index(KEY)
        data["share"] = 100 * data["count"] / data["n"]
        columns = [*KEY, "seeds", "n", "low", "high", "count", "share"]
        return data[columns].reset_index(drop=True)

    def rows(self, common: pd.DataFrame, data: pd.DataFrame) -> Iterator[dict[str, str]]:
        """One row of the table a model, task and loss."""
        for key, here in common.groupby(KEY[:3], observed=True):
            (model, task, loss), reference = map(str, key), reference_in(here)
            own, theirs = (here[here["loss"] == name] for name in (loss, reference))
            zero = [number(100 * float((x["error"] == 0).mean()), 1) for x in (own, theirs)]
            named = {"model": model, "task": task}
            paper = [published("error_p90", **named, loss=x).get("p90") for x in (loss, reference)]
            other = loss_label(reference)
            yield {
                **row_head({**named, "loss": loss}),
                "n": f"{len(own):,}",
                "Seeds": str(own["seed"].nunique()),
                "Error 0 (%)": zero[0],
                "p90 of the error": _p90(own),
                f"{other}: error 0 (%)": zero[1],
                f"{other}: p90": _p90(theirs),
                f"Paper p90 ({other})": "{} ({})".format(*map(number, paper)) if paper[0] else DASH,
            }

    def figure(
        self, common: pd.DataFrame, data: pd.DataFrame, drawn: dict[Pair, list[str]]
    ) -> Figure | None:
        """A row of panels for each model and task."""
        labels = [(pair_name(pair), 1, len(losses)) for pair, losses in drawn.items()]
        figure, grids = block_grid(labels, head=0.4, height=2.5)
        p90 = common.groupby([*KEY, "seed"], observed=True)["error"].quantile(QUANTILE)
        for (axes,), (pair, losses) in zip(grids, drawn.items(), strict=True):
            here = of_pair(data, pair)
            here = here[here["pair"].isin(losses)]
            for axis, loss in zip(axes, losses, strict=True):
                own = here[(here["pair"] == loss) & np.isfinite(here["high"])]
                styles = draw_shares(axis, own, EDGES)
                for name in own["loss"].unique():
                    place = np.log10(p90[(*pair, loss, name)].mean() + 1)
                    axis.axvline(place, **styles[name].lined(linewidth=1))
                n = own["n"].iloc[0]
                title = f"{shortened(loss_label(loss), 16)}\nn = {n:,}"
                axis.set(title=title, xlabel="log10(|error| + 1)")
            scale_shares(axes[0], here["share"].max(), (0, 1, 5, 10, 20, 40, 60, 80, 100))
            last = min(here.loc[here["count"] > 0, "high"].max(), EDGES[-1])
            axes[0].set(ylabel="Answers (%)", xlim=(0, max(1, last)))
        add_legend(figure)
        return figure


def reference_in(here: pd.DataFrame) -> str:
    """The loss that a loss is beside, in rows of both."""
    return str(here.loc[here["loss"].astype("str") != here["pair"].astype("str"), "loss"].iloc[0])


def _p90(own: pd.DataFrame) -> str:
    """The 90th percentile of |ŷ - y|, interpolated linearly as the paper's: with its interval of
    one seed, or mean and deviation over several."""
    from scipy.stats import quantile_test

    p90 = own.groupby("seed")["error"].quantile(QUANTILE)
    digits = 1 if p90.mean() >= 10 else 2
    if len(p90) != 1:
        return mean_over_seeds(p90, digits)
    found = quantile_test(own["error"], p=QUANTILE).confidence_interval()  # NaN: n is too small
    return with_interval(p90.iloc[0], float(found.low), float(found.high), digits)


def draw_shares(axis: Axes, own: pd.DataFrame, edges: ArrayLike) -> dict[str, LossStyle]:
    """The histograms of a loss as outlines, the reference's over a grey area; their styles."""
    styles, reference = loss_styles(own["loss"].cat.categories), reference_in(own)
    for loss in (reference, str(own["pair"].iloc[0])):
        shares = own.loc[own["loss"] == loss, "share"]
        if loss == reference:
            axis.stairs(shares, edges, fill=True, color="#DDDDDD")
        axis.stairs(shares, edges, **styles[loss].lined(linewidth=1.5))
        axis.plot([], [], **styles[loss].lined(label=loss_label(loss)))  # a line in the legend
    return styles


def scale_shares(axis: Axes, highest: float, ticks: Sequence[float]) -> None:
    """The scale of square roots: a tail of 1 % shows beside 50 % of exact answers, and 0 is 0."""
    root = (lambda share: np.sqrt(np.clip(share, 0, None)), np.square)
    axis.set_yscale("function", functions=root)
    axis.set_yticks([tick for tick in ticks if tick <= highest])
    axis.set_ylim(0, 1.7 * max(highest, 1))
