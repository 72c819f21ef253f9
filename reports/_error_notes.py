"""What the captions of the error analyses say: which answers count, and what is not drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from smmd_bench.publishing.style import loss_label, model_label

from ._error_panels import LOSSES
from ._errors import Comparison, Errors, silent

if TYPE_CHECKING:
    import pandas as pd

    from smmd_bench.contracts import Run

FEW = 4
"""So many counts a sentence lists; of more it gives the smallest and the largest share."""


def subset_note(found: Sequence[tuple[Comparison, Errors]]) -> str:
    """Sentences on the common-valid subsets and their sizes."""
    several = len(found) > 1
    sizes = [
        (pair_name(each, loss, several), common.n, common.examples)
        for each, errors in found
        for loss, common in errors.items()
    ]
    return (
        "Common-valid subset, one for each loss and the reference: the examples that both answer "
        f"with a number, on the seeds that both have. Its share: {in_brief(sizes)}."
    )


def outside_counts(every: Sequence[Comparison], data: pd.DataFrame) -> list[tuple[str, int, int]]:
    """Of every pair's loss and reference: name, answers in bins without an end, and all answers.

    `data` has the columns model, task, pair, loss, low, high and count.
    """
    beyond = np.isinf(data["low"]) | np.isinf(data["high"])
    keys = [data[name] for name in ("model", "task", "pair", "loss")]
    outside = data["count"].where(beyond, 0).groupby(keys, observed=True).sum().to_dict()
    n = data["count"].groupby(keys, observed=True).sum().to_dict()
    found = []
    for each in every:
        for pair in each.pairs:
            own = pair_name(each, pair.loss, len(every) > 1)
            names = {pair.loss: own, each.reference: f"{loss_label(each.reference)} beside {own}"}
            for loss, name in names.items():
                key = (each.model, each.task, pair.loss, loss)
                found.append((name, int(outside[key]), int(n[key])))
    return found


def pair_name(comparison: Comparison, loss: str, several: bool) -> str:
    """`SMMD`, or `SMMD (Qwen2.5-1.5B, gsm8k)` where there are several models and tasks."""
    return loss_label(loss) + (f" ({comparison.label})" if several else "")


def in_brief(counts: Sequence[tuple[str, int, int]]) -> str:
    """`NTL 139 of 150; SMMD 142 of 150`, from (name, count, of how many).

    Of more than FEW: `from 54.9 % with GCE to 100.0 % with DIST2`.
    """
    if len(counts) <= FEW:
        return "; ".join(f"{name} {count:,} of {every:,}" for name, count, every in counts)
    shares = sorted((100 * count / max(1, every), name) for name, count, every in counts)
    (low, first), (high, last) = shares[0], shares[-1]
    if f"{low:.1f}" == f"{high:.1f}":
        return f"{low:.1f} % of each"
    return f"from {low:.1f} % with {first} to {high:.1f} % with {last}"


def silent_note(run: Run) -> str:
    """A sentence on the losses that are left out for it; empty where none is."""
    cells = silent(run).query("loss != 'base'").to_dict("records")
    names = dict.fromkeys(
        f"{loss_label(str(cell['loss']))} ({model_label(str(cell['model']))}, {cell['task']})"
        for cell in cells
    )
    return f" Left out, without one number: {', '.join(names)}." if names else ""


def limit_note(every: Sequence[Comparison], groups: int) -> str:
    """A sentence on what is not drawn; empty where all is."""
    notes = []
    if len(every) > groups:
        notes.append(f"{groups} of {len(every)} combinations of model and task")
    if any(len(each.pairs) > LOSSES for each in every):
        shown = dict.fromkeys(pair.loss for each in every for pair in each.drawn(LOSSES))
        names = ", ".join(loss_label(loss) for loss in shown)
        notes.append(f"at most {LOSSES} losses over the reference ({names})")
    return f" Drawn are {' and '.join(notes)}; the CSV of the figure has all." if notes else ""
