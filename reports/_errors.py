"""Which answers the error analyses compare: the common-valid subset of Appendix C.7.

Every trained loss stands beside a reference on a subset of its own: the seeds that both have, and
of each the examples that both answer with a number. So no third loss changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.publishing.style import loss_label, shortened

from ._cells import NO_NUMBERS, NO_RESULTS, PAIR, REFERENCE, measured, numeric_tasks, select_losses
from ._panels import FEWEST

LOSSES = 5
"""Losses over the reference that are drawn at most."""
SUBSET = (
    "Each loss stands over cross-entropy (or the first loss where there is none) on the examples "
    "that both answer with a number, on the seeds that both have."
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
