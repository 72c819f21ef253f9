"""CELL/comparison.json: how each measured cell differs from another one, on the same examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..plugin_system.registry import load_task
from ..scoring.measure import compare
from ..scoring.statistics import RESAMPLES
from ..storage.current import comparison_stamp
from ..storage.files import write_json

if TYPE_CHECKING:
    from ..contracts import Task
    from ..results.frames import RunFrames


def missing_comparisons(run: RunFrames) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """cell.json of each cell that has an opponent and no current comparison, and of that one."""
    return [
        (mine, other)
        for mine, other in run.compared
        if run.current(mine["address"]).comparison(run.current(other["address"])) is None
    ]


def write_comparisons(
    run: RunFrames, task: Callable[[str], Task] = load_task, *, resamples: int = RESAMPLES
) -> bool:
    """Write the comparisons that are missing; returns whether any was written.

    Whoever made the two cells, the comparison is of what they are now. A cell whose task cannot be
    loaded here keeps none.
    """
    import pandas as pd

    written = False
    for pair in missing_comparisons(run):
        mine, other = (run.current(cell["address"]) for cell in pair)
        try:
            plugin = task(pair[0]["task"])
        except UserError:
            continue
        scores, others = (pd.read_parquet(c.folder / "scores.parquet") for c in (mine, other))
        write_json(
            mine.folder / "comparison.json",
            {
                "address": comparison_stamp(mine, other),
                "against": pair[1]["address"],
                "against_loss": pair[1]["loss"],
                **compare(plugin, scores, others, resamples=resamples),
            },
        )
        written = True
    return written
