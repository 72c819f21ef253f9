"""Did the loss help? One row a model, task, loss and metric: better, worse, or cannot tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label, shortened
from smmd_bench.publishing.tables import DASH, number, with_interval

from ._cells import (
    NO_RESULTS,
    judged_metrics,
    main_losses,
    measured,
    noise_label,
    reference_of,
    why_missing,
)
from ._results import NOTHING_LEARNT, digits_of, learnt_nothing, verdicts
from ._text import NOTES, ONE_SEED, P_HOLM, caption, p_text, row_head

SHOWN = (
    "Differences of each task's first metric and of its error (lower is better, where both "
    "answer). Below ±x: a true difference of x is found 4 times in 5, with two or three seeds "
    "less often. Nothing learnt: neither the loss nor what it is compared with has a right "
    "answer."
)


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
        return None if len(_judged(run)) else "the run has no loss besides cross-entropy"

    def build(self, run: Run) -> Artefact:
        """A row for each loss and metric, or the reason why there is no difference."""
        run = main_losses(run)
        data, other = verdicts(run), loss_label(reference_of(run))
        table = pd.DataFrame(_rows(run, data)).fillna(DASH)
        if "predictions" in run.manifest:
            table.attrs["title"] = f"Which answers are better than those of {other}?"
        value, gain = _headings(run)
        table.attrs["values"] = ["Loss", "Metric", value, "Verdict", gain, P_HOLM]
        table.attrs["optional"] = ["n", "Seeds", P_HOLM, value]
        found = data[data["loss"] != reference_of(run)]
        one = "Seeds" in table and (found["seeds"] == 1).any()
        lacking = f"Nothing to compare with: {other} has no result for the same seed."
        words = caption(run, run.cells, SHOWN, lacking if found.empty else ONE_SEED * bool(one))
        return Artefact(words, table, data=None if data.empty else data, notes=NOTES)


def _judged(run: Run) -> pd.DataFrame:
    """The cells of losses that a verdict is about."""
    others = [] if "predictions" in run.manifest else ["base"]
    return run.cells[~run.cells["loss"].isin([*others, reference_of(run)])]


def _rows(run: Run, data: pd.DataFrame) -> Iterator[dict[str, str]]:
    """The rows of the table, in the order of the run; the noise floor is the last of its pair."""
    other, dead, judged = reference_of(run), learnt_nothing(run), {*_judged(run)["loss"]}
    found = dict([*data.groupby(["task", "model", "loss"], observed=True)])
    for _, of_pair in run.cells.groupby(["task", "model"], observed=True):
        groups = [*of_pair.groupby(["task", "model", "loss"], observed=True)]
        for key, cells in sorted(groups, key=lambda group: group[0][2] == other):
            if key[2] in judged or (key[2] == other and key in found):
                nothing = NOTHING_LEARNT if (key[1], key[0], key[2]) in dead else ""
                yield from _of_loss(run, cells, found.get(key, data[:0]), nothing)


def _of_loss(
    run: Run, cells: pd.DataFrame, found: pd.DataFrame, nothing: str
) -> Iterator[dict[str, str]]:
    other, (value, difference) = reference_of(run), _headings(run)
    head = row_head(cells.iloc[0])
    metrics = judged_metrics(head["Task"])
    if cells["loss"].iloc[0] == other:
        head["Loss"] = noise_label(run)
    if found.empty:
        gone = "" if metrics else "no such task is installed"
        no_reference = f"no {loss_label(other)} to compare with"
        yield {**head, "Verdict": why_missing(cells) or gone or nothing or no_reference}
        return
    for metric in metrics:
        if metric.name not in {*found["metric"]}:
            said = nothing or "no answers to compare"
            yield {**head, "Metric": metric.label, "Verdict": said}
    for gain in found.to_dict("records"):
        digits = digits_of(gain["label"])
        bounds = gain["difference"], gain["low"], gain["high"]
        seeds = {} if "predictions" in run.manifest else {"Seeds": str(gain["seeds"])}
        yield {
            **head,
            "Metric": gain["label"],
            value: number(value_compared(run, gain), digits),
            "Verdict": gain["verdict"],
            difference: with_interval(*bounds, digits, sign=True),
            P_HOLM: p_text(gain["p_holm"]),
            **seeds,
            "n": f"{gain['n']:,}",
        }


def _headings(run: Run) -> tuple[str, str]:
    """Of the value that is compared with, and of the difference."""
    label = shortened(loss_label(reference_of(run)), 14)
    return label, f"Δ to {label} [95 %]"


def value_compared(run: Run, gain: dict[Any, Any]) -> float:
    """The metric of the cells that a loss is compared with, mean over the seeds."""
    found = run.metrics[run.metrics["metric"] == gain["metric"]]
    return float(found.loc[found["address"].isin(gain["against"]), "value"].mean())
