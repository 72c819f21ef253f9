"""The rows of the frames of differences: one a pair of cells and metric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..storage.cell import StoredCell
from .summary import IDENTITY

if TYPE_CHECKING:
    import pandas as pd

    from .opponents import Compared

_NUMBERS = ("difference", "low", "high", "b", "c", "p")
_COLUMNS = (
    *IDENTITY, "against", "against_loss", "metric", "difference", "low", "high", "n", "b", "c", "p",
    "jackknife",
)  # fmt: skip


def comparison_rows(
    cells: pd.DataFrame,
    compared: Iterable[Compared],
    current: Callable[[str], StoredCell],
    kind: str,
) -> tuple[list[dict[str, Any]], Sequence[str], Sequence[str]]:
    """What is known of each metric of these pairs; the columns, and those that are numbers."""
    against = {pair.mine["address"]: pair.other for pair in compared if pair.kind == kind}
    rows = [
        {
            **{name: mine[name] for name in IDENTITY},
            "against": other["address"],
            "against_loss": other["loss"],
            "metric": metric,
            **values,
        }
        for mine in cells[cells["status"] == "done"].to_dict("records")
        if (other := against.get(mine["address"])) is not None
        and (content := current(mine["address"]).comparison(current(other["address"]))) is not None
        for metric, values in content["metrics"].items()
    ]
    return rows, _COLUMNS, _NUMBERS
