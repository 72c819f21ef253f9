"""The rows of the frames of differences: one a pair of cells and metric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..storage.current import ComparisonFile, CurrentCell
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
    current: Callable[[str], CurrentCell],
    file: ComparisonFile,
) -> tuple[list[dict[str, Any]], Sequence[str], Sequence[str]]:
    """What each of these files says of each metric, as far as it is current; the columns, and those
    that are numbers."""
    against = {pair.mine["address"]: pair.other for pair in compared if pair.file == file}
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
        and (content := current(mine["address"]).comparison(current(other["address"]), file))
        is not None
        for metric, values in content["metrics"].items()
    ]
    return rows, _COLUMNS, _NUMBERS
