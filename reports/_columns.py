"""Tables with a column a loss: which losses fit, and the column of one without results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH

from ._cells import REFERENCE, why_missing

if TYPE_CHECKING:
    import pandas as pd

LOSSES = 6
"""Columns of losses at most; the CSV of the data has all."""
_FIRST, _LAST = (REFERENCE, "smmd"), "base"


def that_have_columns(losses: Iterable[str]) -> tuple[list[str], str]:
    """The losses that fit, in their order, and a sentence on those that do not (empty: all do).

    Cross-entropy and SMMD come first, variants and then the untuned model last.
    """
    every = list(losses)
    ranked = sorted(every, key=lambda x: (x not in _FIRST, x == _LAST, "[" in x))
    shown = [loss for loss in every if loss in ranked[:LOSSES]]
    left = ", ".join(loss_label(loss) for loss in every if loss not in shown)
    note = f" For lack of room not in the table, but in the CSV of its data: {left}."
    return shown, note if left else ""


def hole(cells: pd.DataFrame, loss: str, rows: int) -> list[str] | None:
    """The column of a loss whose cells have no result: why, and dashes; None: one has."""
    why = why_missing(cells[cells["loss"] == loss])
    return [why, *[DASH] * (rows - 1)] if why else None
