"""Which answers the error analyses compare: the common-valid subset of Appendix C.7.

An example counts for a model, task and seed if the completions of *every* compared loss parse to
a number, so that a loss is not favoured by what it leaves unanswered. Compared are the losses that
were trained (the untuned model has no seeds and often no number), on the seeds that all of them
have results for. A loss that never answers with a number would empty the subset,
and is left out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smmd_bench.publishing.style import loss_label, model_label

from ._cells import measured

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from smmd_bench.results.run import RunFrames

REFERENCE, PAPERS = "ce", "smmd"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The losses of one model and task that are compared, and their cells.

    `losses` stand in the order of the run; the others are drawn against `reference`: cross-entropy,
    or the first where the run has none, or where the completions were made elsewhere.
    """

    model: str
    task: str
    losses: tuple[str, ...]
    seeds: tuple[int, ...]
    addresses: tuple[str, ...]
    reference: str

    @property
    def others(self) -> tuple[str, ...]:
        """The losses besides the reference."""
        return tuple(loss for loss in self.losses if loss != self.reference)

    def drawn(self, most: int) -> tuple[str, ...]:
        """The first of the others, and SMMD in any case: the paper draws it alone."""
        first = self.others[:most]
        if PAPERS in self.others and PAPERS not in first:
            return (*first[:-1], PAPERS)
        return first

    @property
    def label(self) -> str:
        """The name in a title: `Qwen2.5-1.5B, gsm8k`."""
        return f"{model_label(self.model)}, {self.task}"


@dataclass(frozen=True)
class CommonErrors:
    """The common-valid subset of a comparison.

    frame     model, task, loss, seed, error and the columns asked for: a row an answer, so that
              every example of a seed has one row for each loss
    n         answers of each loss in it, over all seeds
    examples  answers of each loss, over all seeds, with those left out
    """

    frame: pd.DataFrame
    n: int
    examples: int

    def of(self, loss: str) -> pd.DataFrame:
        """The rows of one loss."""
        return self.frame[self.frame["loss"] == loss]


def comparisons(run: RunFrames) -> list[Comparison]:
    """The models and tasks with results of two losses or more on a common seed, in run order.

    A task whose targets hold no numbers is left out.
    """
    cells = _with_scores(run)
    cells = cells[(cells["loss"] != "base") & cells["task"].isin(numeric_tasks(run, cells))]
    cells = cells[~cells["address"].isin(silent(run)["address"])]
    found = []
    for (model, task), group in cells.groupby(["model", "task"], observed=True):
        seeds = set.intersection(*(set(c["seed"]) for _, c in group.groupby("loss", observed=True)))
        kept = group[group["seed"].isin(seeds)]
        if seeds and kept["loss"].nunique() > 1:
            losses = tuple(str(loss) for loss in kept["loss"].unique())
            every = tuple(int(seed) for seed in sorted(seeds))
            addresses = tuple(kept["address"])
            trained_here = REFERENCE in losses and "predictions" not in run.manifest
            first = REFERENCE if trained_here else losses[0]
            found.append(Comparison(str(model), str(task), losses, every, addresses, first))
    return found


def why_none(run: RunFrames) -> str | None:
    """Why no errors can be compared; None: they can."""
    if measured(run.cells).empty:
        return "no cell has results"
    cells = _with_scores(run)
    if cells.empty:
        return "no cell has scores"
    if not numeric_tasks(run, cells):
        return "no task has numbers as answers"
    if not comparisons(run):
        return "no model and task has numbers of two trained losses on a common seed"
    return None


def common_errors(
    run: RunFrames, comparison: Comparison, columns: Sequence[str] = ()
) -> CommonErrors:
    """The answers to the examples that every loss of the comparison answers with a number.

    `error` is |ŷ - y|, which exists where completion and target both hold a number.
    """
    scores = run.read("scores", ["uid", "error", *columns], comparison.addresses)
    valid = scores[scores["error"].notna()]
    answered = valid.groupby(["seed", "uid"], sort=False)["loss"].transform("size")
    common = valid[answered == len(comparison.losses)].drop(columns=["uid", "address"])
    losses = len(comparison.losses)
    return CommonErrors(common, len(common) // losses, len(scores) // losses)


def silent(run: RunFrames) -> pd.DataFrame:
    """The cells without one completion that holds a number."""
    rates = run.metrics[run.metrics["metric"] == "parse_failure_rate"]
    return rates[rates["value"] >= 100]


def silent_note(run: RunFrames) -> str:
    """A sentence on the losses that are left out for it; empty where none is."""
    names = [
        f"{loss_label(str(cell['loss']))} ({model_label(str(cell['model']))}, {cell['task']})"
        for cell in silent(run).to_dict("records")
        if cell["loss"] != "base"
    ]
    left_out = ", ".join(dict.fromkeys(names))
    return f" Left out, without one number: {left_out}." if names else ""


def numeric_tasks(run: RunFrames, cells: pd.DataFrame) -> list[str]:
    """The tasks of measured cells whose targets hold numbers, by the first cell of each.

    Times are none: their digits are not those of one number, and 12:50 and 1:00 are not far apart.
    """
    times = run.metrics.loc[run.metrics["metric"] == "time_gap", "address"]
    first = cells[~cells["address"].isin(times)].drop_duplicates("task")
    answers = run.read("scores", ["answer"], first["address"])
    if "answer" not in answers.columns:
        return []
    return [str(task) for task in answers.loc[answers["answer"].notna(), "task"].unique()]


def subset_note(found: Iterable[tuple[Comparison, CommonErrors]]) -> str:
    """The sentences on the common-valid subset, with its size for every model and task."""
    found = list(found)
    sizes = "; ".join(
        f"{comparison.label}: {common.n:,} of {common.examples:,}"
        + (f" over {len(comparison.seeds)} seeds" if len(comparison.seeds) > 1 else "")
        for comparison, common in found
    )
    return (
        "Common-valid subset: the examples whose completions hold a number with every trained loss "
        f"of the model, task and seed (n {sizes})."
    )


def subset_title(comparison: Comparison, common: CommonErrors) -> str:
    """A title of panels: `Qwen2.5-1.5B, gsm8k, n = 1,303`."""
    seeds = len(comparison.seeds)
    return f"{comparison.label}, n = {common.n:,}" + (f" over {seeds} seeds" * (seeds > 1))


def panel_title(comparison: Comparison, loss: str) -> str:
    """`SMMD over CE`, with the parameters of a variant in lines of their own."""
    words = f"{loss_label(loss)} over {loss_label(comparison.reference)}"
    words = words.replace("[", " [").replace(",", ", ")
    return textwrap.fill(words, 26, break_long_words=False)


def legend_columns(found: Iterable[tuple[Comparison, CommonErrors]], panels: int) -> int:
    """How many losses fit side by side above that many panels."""
    longest = max(len(loss_label(loss)) for comparison, _ in found for loss in comparison.losses)
    return max(1, min(6, 30 * max(panels, 2) // (longest + 8)))


def limit_note(drawn: Sequence[Comparison], every: Sequence[Comparison], losses: int) -> str:
    """A sentence on what is not drawn; empty where all is."""
    notes = []
    if len(drawn) < len(every):
        notes.append(f"{len(drawn)} of {len(every)} pairs of model and task")
    if any(len(comparison.others) > losses for comparison in drawn):
        shown = dict.fromkeys(loss for comparison in drawn for loss in comparison.drawn(losses))
        names = ", ".join(loss_label(loss) for loss in shown)
        notes.append(f"{names} beside {loss_label(drawn[0].reference)}")
    return f" Drawn are {' and '.join(notes)}; the CSV has all." if notes else ""


def square_root(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scale of the shares: a tail of 1 % shows beside 50 % of exact answers, and 0 is 0."""
    return np.asarray(np.sqrt(np.clip(values, 0, None)))


def _with_scores(run: RunFrames) -> pd.DataFrame:
    cells = measured(run.cells)
    files = [run.path / "cells" / address / "scores.parquet" for address in cells["address"]]
    return cells[[file.is_file() for file in files]]
