"""Which answers the error analyses compare: the common-valid subset of Appendix C.7.

Every trained loss stands beside a reference on a subset of its own: the seeds that both have
results for, and of each seed the examples that both answer with a number. So no third loss
changes it. The untuned model takes no part: it has no seeds and often no number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from smmd_bench.contracts import Run

from ._cells import REFERENCE, measured, without_numbers


@dataclass(frozen=True)
class Pair:
    """A loss beside the reference of its model and task: cross-entropy, or the first loss where the
    run has none or did not train. `addresses` are the cells of both, on the seeds of both.
    """

    model: str
    task: str
    reference: str
    loss: str
    seeds: tuple[int, ...]
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class CommonErrors:
    """The common-valid subset of a pair.

    `frame` has a row an answer (loss, seed, error and the columns asked for), and `examples` is the
    number of answers of either over all seeds, with those left out.
    """

    pair: Pair
    frame: pd.DataFrame
    examples: int

    @property
    def n(self) -> int:
        """Answers of either in the subset, over all seeds."""
        return len(self.frame) // 2

    def of(self, loss: str) -> pd.DataFrame:
        """The rows of one loss."""
        return self.frame[self.frame["loss"] == loss]


def error_pairs(run: Run) -> list[Pair]:
    """The losses that share a seed with the reference of their model and task, in run order.

    Tasks without numbers are left out, and so is a loss without a single one.
    """
    cells = measured(run.cells)
    cells = cells[(cells["loss"] != "base") & cells["task"].isin(numeric_tasks(run))]
    cells = cells[~cells["address"].isin(silent(run)["address"])]
    found = []
    for (model, task), group in cells.groupby(["model", "task"], observed=True):
        by_loss = {
            str(loss): own.set_index("seed")["address"]
            for loss, own in group.groupby("loss", observed=True)
        }
        trained_here = "predictions" not in run.manifest
        reference = REFERENCE if trained_here and REFERENCE in by_loss else next(iter(by_loss))
        theirs = by_loss.pop(reference)
        for loss, own in by_loss.items():
            seeds = [int(seed) for seed in sorted(own.index.intersection(theirs.index))]
            addresses = (*theirs[seeds], *own[seeds])
            if seeds:
                pair = Pair(str(model), str(task), reference, loss, tuple(seeds), addresses)
                found.append(pair)
    return found


def why_none(run: Run) -> str | None:
    """Why no errors can be compared; None: they can."""
    if measured(run.cells).empty:
        return "no cell has results"
    if not numeric_tasks(run):
        return "no task has numbers as answers"
    if not error_pairs(run):
        return "no model and task has numbers of two trained losses on a common seed"
    return None


def common_errors(run: Run, columns: Sequence[str] = ()) -> list[CommonErrors]:
    """Of every pair, the answers to the examples that both losses answer with a number.

    `error` is |ŷ - y|. The scores of a model and task are read once.
    """
    found = []
    for _, group in groupby(error_pairs(run), key=lambda pair: (pair.model, pair.task)):
        pairs = list(group)
        addresses = dict.fromkeys(address for pair in pairs for address in pair.addresses)
        scores = run.read("scores", ["uid", "error", *columns], addresses)
        sizes = scores["address"].value_counts()
        valid = scores[scores["error"].notna()]
        example = valid.groupby(["seed", "uid"], sort=False).ngroup()
        valid = valid[["address", "loss", "seed", "error", *columns]]
        for pair in pairs:
            here = valid["address"].isin(pair.addresses)
            both = example[here].duplicated(keep=False)  # a loss answers an example of a seed once
            common = valid[here][both].drop(columns="address")
            examples = int(sizes[list(pair.addresses)].sum()) // 2
            found.append(CommonErrors(pair, common, examples))
    return found


def silent(run: Run) -> pd.DataFrame:
    """The cells without one completion that holds a number."""
    rates = run.metrics[run.metrics["metric"] == "parse_failure_rate"]
    return rates[rates["value"] >= 100]


def numeric_tasks(run: Run) -> list[str]:
    """The measured tasks whose targets hold numbers; times are none, as 12:50 is close to 1:00."""
    times = run.metrics.loc[run.metrics["metric"] == "time_gap", "task"]
    others = {*without_numbers(run), *times}
    return [str(task) for task in measured(run.cells)["task"].unique() if task not in others]
