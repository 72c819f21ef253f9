"""CELL/comparison.json: how each measured cell differs from another one, on the same examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import UserError
from ..plugin_system.registry import load_task
from ..scoring.measure import compare
from ..scoring.statistics import RESAMPLES
from ..storage.current import comparison_stamp
from ..storage.files import write_json

if TYPE_CHECKING:
    from ..contracts import Task
    from ..results.frames import RunFrames


def write_comparisons(
    run: RunFrames, task: Callable[[str], Task] = load_task, *, resamples: int = RESAMPLES
) -> bool:
    """Write comparison.json of every cell of a run that has an opponent and no current one.

    Whoever made the two cells, the comparison is of what they are now. A cell whose task cannot be
    loaded here keeps none. Returns whether any was written.
    """
    import pandas as pd

    written = False
    for pair in run.compared:
        mine, other = (run.current(cell["address"]) for cell in pair)
        if mine.comparison(other) is not None:
            continue
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
