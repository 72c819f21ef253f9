"""The caption of a table or figure, sentence by sentence.

What it shows, of how many examples and seeds, how to read its intervals, tests and published
values, and which cells have no result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smmd_bench.publishing.style import loss_label

from ._cells import P_HOLM, TO_PAPER, measured, missing_note
from ._paper import reference
from ._sample import sample_note
from ._significance import LEVEL

if TYPE_CHECKING:
    import pandas as pd

    from smmd_bench.contracts import Run

INTERVALS = "95 % intervals, percentile bootstrap over the test examples"
DEVIATION = "standard deviation over training seeds"


def write_caption(
    run: Run, cells: pd.DataFrame, shown: str, *notes: str, sample: str | None = None
) -> str:
    """`shown`, the sample, the notes, and which of the cells have no result.

    Each part is one or several sentences; an empty one is left out. `sample` replaces the sentence
    with the examples, seeds and parse failures of the cells (`sample_note`).
    """
    sample = sample_note(run, cells) if sample is None else sample
    parts = [shown, sample, *notes, missing_note(cells)]
    return " ".join(part.strip() for part in parts if part.strip())


def decoding_note(run: Run) -> str:
    """How the completions were made."""
    made_elsewhere = "predictions" in run.manifest
    return "Completions made elsewhere." if made_elsewhere else "Greedy decoding."


def has_seeds(data: pd.DataFrame, *key: str) -> bool:
    """Whether a model, task and loss (and what else is in the key) has several measured seeds."""
    groups = measured(data).groupby(["model", "task", "loss", *key], observed=True)
    return bool(groups.size().max() > 1)


def spread_note(data: pd.DataFrame, *key: str) -> str:
    """What brackets and ± mean in a table with the cells of `data`."""
    sizes = measured(data).groupby(["model", "task", "loss", *key], observed=True).size()
    parts = [f"Brackets: {INTERVALS}"] if (sizes == 1).any() else []
    parts += [f"±: {DEVIATION}"] if (sizes > 1).any() else []
    return f"{'; '.join(parts)}." if parts else ""


def difference_note(other: str, metric: str, *, several: bool) -> str:
    """What the difference to `other`, its p and bold mean in a table."""
    opponent = loss_label(other)
    largest = ", the largest p of the seeds" if several else ""
    each = " in every seed" if several else ""
    return (
        f"Δ to {opponent}: paired difference of {metric} on the same examples. {P_HOLM}: McNemar's "
        f"exact test{largest}, corrected by Holm over the losses of a model and task. Bold (* on a "
        f"terminal): the best loss of a model and task, where it beats {opponent}{each} with a "
        f"corrected p below {LEVEL}."
    )


def paper_note(table: str, metric: str, unsaid: str) -> str:
    """Where published values are from, and what the paper leaves `unsaid` of them."""
    return (
        f"Paper: {reference(table)}, which does not report its {unsaid}; {TO_PAPER}: {metric} "
        "minus that."
    )
