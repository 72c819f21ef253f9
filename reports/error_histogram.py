"""GSM8K overall error histogram (the paper's Appendix C.7): log10(|ŷ - y| + 1) of each loss.

Every trained loss stands beside a reference on its common-valid subset: the seeds that both have,
and of each the examples that both answer with a number. So no third loss changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import add_legend, loss_label, loss_styles, shortened
from smmd_bench.publishing.tables import DASH, number, with_interval

from ._cells import (
    NO_NUMBERS,
    NO_RESULTS,
    PAIR,
    REFERENCE,
    in_order,
    main_losses,
    measured,
    numeric_tasks,
    of_pair,
    select_losses,
)
from ._panels import FEWEST, LIMITS, block_grid, draw_shares, pair_name, set_share_scale
from ._paper import published
from ._text import NOTES, caption, mean_over_seeds, row_head

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOSSES = 5
"""Losses over the reference that are drawn at most."""
SUBSET = (
    "Each loss stands over cross-entropy (or the first loss where there is none) on the examples "
    "that both answer with a number, on the seeds that both have."
)
EDGES = np.linspace(0, 6, 25)
"""Edges of the bins of log10(|ŷ - y| + 1); errors from 10^6 on are counted as outside."""
QUANTILE = 0.9
GROUPS = 4
"""Models and tasks that are drawn at most; the table has all, and all losses."""
TABLE = "error_p90"
SHOWN = (
    "Share of answers by log10(|error| + 1), over the reference (grey area). Vertical lines: the "
    "90th percentile (p90) of the absolute error, mean over seeds; of one seed with an interval by "
    f"order statistics. {SUBSET} {LIMITS}"
)


@dataclass(frozen=True)
class CommonErrors:
    """A loss beside the reference of its model and task, on their common-valid subset.

    `frame` has a row an answer (loss, seed, error and the columns asked for). The reference is
    cross-entropy, or the first loss where the run has none or did not train.
    """

    model: str
    task: str
    reference: str
    loss: str
    seeds: tuple[int, ...]
    frame: pd.DataFrame

    @property
    def n(self) -> int:
        """Answers of either in the subset, over all seeds."""
        return len(self.frame) // 2

    def of(self, loss: str) -> pd.DataFrame:
        """The rows of one loss."""
        return self.frame[self.frame["loss"] == loss]

    @property
    def title(self) -> str:
        """The loss, with n."""
        return f"{shortened(loss_label(self.loss), 16)}\nn = {self.n:,}"


Block = list[CommonErrors]
"""The drawn losses of a model and task."""


def why_none(run: Run) -> str | None:
    """Why no errors can be compared; None: they can."""
    if measured(run.cells).empty:
        return NO_RESULTS
    if not numeric_tasks(run):
        return NO_NUMBERS
    none = "no model and task has numbers of two trained losses on a common seed"
    return None if common_errors(run) else none


def common_errors(run: Run, columns: Sequence[str] = ()) -> Block:
    """Of every loss, the answers to the examples that it and the reference answer with a number.

    `error` is |ŷ - y|. Losses without such an example are left out.
    """
    cells = measured(run.cells)
    cells = cells[(cells["loss"] != "base") & cells["task"].isin(numeric_tasks(run))]
    found = []
    for (model, task), group in cells.groupby(PAIR, observed=True):
        valid = run.read("scores", ["uid", "error", *columns], group["address"])
        valid = valid[valid["error"].notna()]
        losses = [str(loss) for loss in group["loss"].sort_values().unique()]
        trained_here = "predictions" not in run.manifest
        reference = REFERENCE if trained_here and REFERENCE in losses else losses[0]
        for loss in losses:
            here = valid[valid["loss"].isin([loss, reference])]
            here = here[here.duplicated(["seed", "uid"], keep=False)]  # an answer of either
            if len(here):
                seeds = tuple(sorted(map(int, here["seed"].unique())))
                here = here[["loss", "seed", "error", *columns]]
                found.append(CommonErrors(str(model), str(task), reference, loss, seeds, here))
    return found


def drawn_blocks(
    found: Sequence[CommonErrors], groups: int | None = None, fewest: int = FEWEST
) -> list[Block]:
    """The losses to draw of the first models and tasks, with the examples that a panel needs."""
    drawn = []
    enough = [each for each in found if each.n >= fewest * len(each.seeds)]
    for _, group in groupby(enough, key=lambda each: (each.model, each.task)):
        every = {each.loss: each for each in group}
        drawn.append([every[loss] for loss in select_losses(every, LOSSES)])
    return drawn[:groups]


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
        run = main_losses(run)
        found = common_errors(run)
        data = in_order(pd.concat(map(error_bins, found)), run.cells)
        table = pd.DataFrame([_row(common) for common in found])
        papers = [name for name in table if str(name).startswith("Paper")]
        unused = [name for name in papers if (table[name].fillna(DASH) == DASH).all()]
        table = table.fillna(DASH).drop(columns=unused)
        table.attrs["title"] = self.title
        blocks = drawn_blocks(found, GROUPS)
        figure = _figure(blocks, data) if blocks else None
        return Artefact(caption(run, run.cells, SHOWN), table, figure, data, NOTES)


def error_bins(common: CommonErrors) -> pd.DataFrame:
    """The histograms of a loss and of the reference, on the same examples.

    `pair` is the loss beside the reference, `loss` whose answers these are, `low` and `high` are
    the ends of a bin of log10(|ŷ - y| + 1), the last without an upper end. `n` are the answers of
    each, `share` is in percent of it.
    """
    n, edges, seeds = common.n, np.append(EDGES, np.inf), len(common.seeds)
    key = {"model": common.model, "task": common.task, "pair": common.loss}
    parts = []
    for loss in (common.reference, common.loss):
        errors = common.of(loss)["error"].to_numpy(np.float64)
        counts, _ = np.histogram(np.log10(errors + 1), edges)
        columns = {**key, "loss": loss, "seeds": seeds, "n": n, "low": edges[:-1]}
        columns |= {"high": edges[1:], "count": counts, "share": 100 * counts / max(1, n)}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def _p90_by_seed(common: CommonErrors, loss: str) -> pd.Series[float]:
    """The 90th percentile of |ŷ - y| of a loss by seed, interpolated linearly as the paper's."""
    return common.of(loss).groupby("seed")["error"].quantile(QUANTILE)


def _row(common: CommonErrors) -> dict[str, str]:
    other, key = loss_label(common.reference), {"model": common.model, "task": common.task}
    losses = common.loss, common.reference
    paper = [published(TABLE, **key, loss=loss).get("p90") for loss in losses]
    zero = [number(100 * float((common.of(x)["error"] == 0).mean()), 1) for x in losses]
    return {
        **row_head(vars(common)),
        "n": f"{common.n:,}",
        "Seeds": str(len(common.seeds)),
        "Error 0 (%)": zero[0],
        "p90 of the error": _p90(common, common.loss),
        f"{other}: error 0 (%)": zero[1],
        f"{other}: p90": _p90(common, common.reference),
        f"Paper p90 ({other})": "{} ({})".format(*map(number, paper)) if paper[0] else DASH,
    }


def _p90(common: CommonErrors, loss: str) -> str:
    """The percentile with its interval of one seed, or mean and deviation over several."""
    from scipy.stats import quantile_test

    p90 = _p90_by_seed(common, loss)
    digits = 1 if p90.mean() >= 10 else 2
    if len(p90) != 1:
        return mean_over_seeds(p90, digits)
    errors = common.of(loss)["error"].to_numpy(np.float64)
    found = quantile_test(errors, p=QUANTILE).confidence_interval()  # NaN where n is too small
    return with_interval(p90.iloc[0], float(found.low), float(found.high), digits)


def _figure(blocks: list[Block], data: pd.DataFrame) -> Figure:
    labels = [(pair_name((b[0].model, b[0].task)), 1, len(b)) for b in blocks]
    figure, grids = block_grid(labels, head=0.4, height=2.5)
    styles = loss_styles(data["loss"].cat.categories)
    for (axes,), block in zip(grids, blocks, strict=True):
        here = of_pair(data, (block[0].model, block[0].task))
        here = here[here["pair"].isin([common.loss for common in block])]
        for axis, common in zip(axes, block, strict=True):
            own = here[(here["pair"] == common.loss) & np.isfinite(here["high"])]
            for loss in (common.reference, common.loss):
                shares, how = own.loc[own["loss"] == loss, "share"], styles[loss]
                draw_shares(axis, shares, EDGES, how, loss == common.reference)
                p90 = np.log10(_p90_by_seed(common, loss).mean() + 1)
                axis.axvline(p90, **how.lined(linewidth=1, label=loss_label(loss)))
            axis.set(title=common.title, xlabel="log10(|error| + 1)")
        set_share_scale(axes[0], float(here["share"].max()), (0, 1, 5, 10, 20, 40, 60, 80, 100))
        last = min(here.loc[here["count"] > 0, "high"].max(), EDGES[-1])
        axes[0].set(ylabel="Answers (%)", xlim=(0, max(1, last)))
    add_legend(figure)
    return figure
