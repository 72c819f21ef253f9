"""Did the loss help? One row a model, task, loss and metric: better, worse, or cannot tell."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.style import loss_label, shortened
from smmd_bench.publishing.tables import DASH, number, p_value, with_interval

from ._caption import few_seeds, join_sentences, missing_note, sample_note, when
from ._cells import main_losses, measured, why_missing
from ._columns import row_head
from ._gains import noise_label, reference_of, unknown_note
from ._significance import tests_notes
from ._tuning import tuning_note
from ._values import P_HOLM, delta
from ._verdicts import NOTHING_LEARNT, digits_of, judged_metrics, learnt_nothing, verdicts

LETTERS = 14
"""Of the label that the others are compared with, in a heading."""
NO_REFERENCE = "no {} to compare with"
NOTHING = "no answers to compare"


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
            return "no cell has results"
        if "predictions" in run.manifest and run.comparisons.empty:
            return "a second file of predictions is needed"
        return None if len(_judged(run)) else "the run has no loss besides cross-entropy"

    def build(self, run: Run) -> Artefact:
        """A row for each loss and metric, or the reason why there is no difference."""
        run, left = main_losses(run)
        data, other = verdicts(run), loss_label(reference_of(run))
        table = pd.DataFrame(_rows(run, data)).fillna(DASH)
        if "predictions" in run.manifest:
            table.attrs["title"] = f"Which answers are better than those of {other}?"
        value, gain = _headings(run)
        table.attrs["values"] = ["Loss", "Metric", value, "Verdict", gain, P_HOLM]
        table.attrs["optional"] = ["n", "Seeds", P_HOLM, value]
        errors = [m.label for t in run.cells["task"].unique() for m in judged_metrics(str(t))[1:]]
        lower = ", ".join(dict.fromkeys(errors))
        found = data[data["loss"] != reference_of(run)] if len(data) else data
        one = bool((found["seeds"] == 1).any()) if len(found) and "Seeds" in table else False
        few = few_seeds(data["seeds"]) if len(data) else ""
        below = len(data) > 0 and data["verdict"].str.contains("below").any()
        caption = join_sentences(
            f"{delta(reference_of(run))} on the same test examples.",
            when(one, "One seed: no interval covers the randomness of training."),
            when(lower, f"{lower}: lower is better, where both answer."),
            when(
                NOTHING_LEARNT in {*table["Verdict"]},
                f"Nothing learnt: neither the loss nor {other} has a right answer.",
            ),
            when(below, f"Below ±x: a true difference of x is found 4 times in 5{few}."),
            sample_note(run, run.cells),
            when(found.empty and _known(run), _advice(run, other)),
            unknown_note(run),
            tuning_note(run, run.cells),
            left,
            missing_note(run.cells),
        )
        notes = tests_notes(data, noise_label(run))
        return Artefact(caption, table, data=None if data.empty else data, notes=notes)


def _judged(run: Run) -> pd.DataFrame:
    """The cells of losses that a verdict is about."""
    others = [] if "predictions" in run.manifest else ["base"]
    return run.cells[~run.cells["loss"].isin([*others, reference_of(run)])]


def _known(run: Run) -> bool:
    """Whether the plugin of any task is here."""
    return any(judged_metrics(str(task)) for task in run.cells["task"].unique())


def _advice(run: Run, other: str) -> str:
    """What to do where nothing can be compared."""
    return f"Nothing to compare with: {other} has no result for the same seed; add it to --losses."


def _rows(run: Run, data: pd.DataFrame) -> Iterator[dict[str, str]]:
    """The rows of the table, in the order of the run."""
    other, (value, difference), dead = reference_of(run), _headings(run), learnt_nothing(run)
    gains = dict([*data.groupby(["task", "model", "loss"], observed=True)]) if len(data) else {}
    for (task, model, loss), cells in _shown(run, gains):
        head = row_head({"model": model, "task": task, "loss": loss})
        head["Loss"] = noise_label(run) if loss == other else head["Loss"]
        here = gains.get((task, model, loss), data[:0])
        nothing = NOTHING_LEARNT if (model, task, loss) in dead else ""
        if here.empty:
            gone = "" if judged_metrics(str(task)) else "no such task is installed"
            why = why_missing(cells) or gone or nothing or NO_REFERENCE.format(loss_label(other))
            yield {**head, "Verdict": why}
        elif lost := [
            m.label for m in judged_metrics(str(task)) if m.name not in {*here["metric"]}
        ]:
            yield from ({**head, "Metric": label, "Verdict": nothing or NOTHING} for label in lost)
        for gain in here.to_dict("records"):
            digits = digits_of(gain["label"])
            values = gain["difference"], gain["low"], gain["high"]
            row = {**head, "Metric": gain["label"]}
            row |= {value: number(_value(run, gain), digits)}
            row |= {"Verdict": gain["verdict"]}
            row |= {difference: with_interval(*values, digits, sign=True)}
            row |= {P_HOLM: DASH if pd.isna(gain["p_holm"]) else p_value(gain["p_holm"])}
            seeds = {} if "predictions" in run.manifest else {"Seeds": str(gain["seeds"])}
            yield row | seeds | {"n": f"{gain['n']:,}"}


def _headings(run: Run) -> tuple[str, str]:
    """Of the value that is compared with, and of the difference; the caption has a long name in
    full."""
    label = shortened(loss_label(reference_of(run)), LETTERS)
    return label, f"Δ to {label} [95 %]"


def _shown(run: Run, gains: Collection[Any]) -> list[tuple[Any, pd.DataFrame]]:
    """The cells of each task, model and loss that has a row; the noise floor is the last of its
    task and model."""
    groups = [*run.cells.groupby(["task", "model", "loss"], observed=True)]
    judged, other = {*_judged(run)["loss"]}, reference_of(run)
    kept = [g for g in groups if g[0][2] in judged or (g[0][2] == other and g[0] in gains)]
    places = {pair: at for at, pair in enumerate(dict.fromkeys(key[:2] for key, _ in kept))}
    return sorted(kept, key=lambda group: (places[group[0][:2]], group[0][2] == other))


def _value(run: Run, gain: dict[Any, Any]) -> float:
    """The metric of the cells that a loss is compared with, mean over the seeds."""
    found = run.metrics[run.metrics["metric"] == gain["metric"]]
    return float(found.loc[found["address"].isin(gain["against"]), "value"].mean())
