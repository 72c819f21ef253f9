"""The caption of a table or figure, sentence by sentence.

What it shows, of how many examples and seeds, how to read its intervals, tests and published
values, and which cells have no result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smmd_bench.publishing.style import loss_label

from ._cells import measured, missing_note
from ._paper import reference
from ._sample import sample_note
from ._significance import LEVEL
from ._values import P_HOLM, TO_PAPER

if TYPE_CHECKING:
    import pandas as pd

    from smmd_bench.contracts import Run

INTERVALS = "95 % intervals, percentile bootstrap over the test examples"
DEVIATION = "standard deviation over training seeds"


def write_caption(
    run: Run, cells: pd.DataFrame, shown: str, *notes: str, sample: str | None = None
) -> str:
    """`shown`, the sample, the notes, and which of the cells have no result.

    Each part is one or several sentences, or empty. `sample` replaces the sentence
    with the examples, seeds and parse failures of the cells (`sample_note`).
    """
    sample = sample_note(run, cells) if sample is None else sample
    return join_sentences(shown, sample, *notes, missing_note(cells))


def join_sentences(*parts: str) -> str:
    """The parts with a space between; an empty one is left out."""
    return " ".join(part.strip() for part in parts if part.strip())


def decoding_note(run: Run) -> str:
    """How the completions were made."""
    made_elsewhere = "predictions" in run.manifest
    return "Completions made elsewhere." if made_elsewhere else "Greedy decoding."


def spread_note(data: pd.DataFrame, *key: str) -> str:
    """What brackets and ± mean in a table of these cells; `key` tells its rows apart, besides
    model, task and loss."""
    sizes = _seeds(data, *key)
    parts = [f"Brackets: {INTERVALS}"] * bool((sizes == 1).any())
    parts += [f"±: {DEVIATION}"] * bool((sizes > 1).any())
    return f"{'; '.join(parts)}." if parts else ""


def significance_note(data: pd.DataFrame, other: str) -> str:
    """What p and bold mean in a table of tested cells that are compared with `other`."""
    several, opponent = bool(_seeds(data).max() > 1), loss_label(other)
    largest = ", the largest p of the seeds" * several
    bold = "Bold (* on a terminal): the best loss of a model and task, where it beats"
    return (
        f"{P_HOLM}: McNemar's exact test against {opponent}{largest}, corrected by Holm over the "
        f"losses of a model and task. {bold} {opponent}{' in every seed' * several} with a "
        f"corrected p below {LEVEL}{'' if data['best'].any() else ' (none does)'}."
    )


def _seeds(data: pd.DataFrame, *key: str) -> pd.Series[int]:
    """How many measured seeds each row of a table has."""
    return measured(data).groupby(["model", "task", "loss", *key], observed=True)["seed"].nunique()


def paper_note(table: str, unsaid: str, metric: str) -> str:
    """Where published values are from, and what the paper does not report of them."""
    where = f"{reference(table)}, which does not report its {unsaid}"
    return f"Paper: {where}; {TO_PAPER}: {metric} minus that."


def outside_note(run: Run) -> str:
    """A sentence on digits that only cross-entropy sees; empty if there are none.

    At N = 1000 "05" is one token and no canonical integer, and so outside V_num.
    """
    shares: dict[str, float] = {}
    for address, model in zip(run.cells["address"], run.cells["model"], strict=True):
        receipt = run.current(str(address)).receipt or {}
        targets = receipt.get("numeric_targets") or {}
        if targets.get("outside"):
            shares[str(model)] = 100 * targets["outside"] / targets["digit_tokens"]
    found = ", ".join(f"{share:.1f} % with {model}" for model, share in shares.items())
    return f"Digit tokens of the training targets outside V_num: {found}." if found else ""
