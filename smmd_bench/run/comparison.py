"""What is computed from a cell's completions: scores, metrics, the difference from another cell."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from ..contracts import Progress, Task
from ..errors import UserError
from ..experiment.cell import Cell
from ..plugin_system.registry import load_task
from ..results.frames import RunFrames
from ..results.opponents import Compared
from ..scoring.measure import compare, measure
from ..scoring.statistics import RESAMPLES
from ..storage.current import CurrentCell, comparison_stamp
from ..storage.files import read_parquet, write_json, write_parquet
from .run_directory import record_failure


def measure_cells(cells: Sequence[tuple[Cell, Path]], progress: Progress) -> None:
    """Measure cells that are decoded, each with its folder, where that is missing."""
    for number, (cell, folder) in enumerate(cells):
        now = cell.files(folder.parents[1])
        if now.is_decoded and now.metrics is None:
            progress("measure", number, len(cells))
            completions = read_parquet(folder / "completions.parquet").to_pandas()
            measure_cell(now, cell.task_plugin, completions, cell.decoders)
    progress("measure", len(cells), len(cells))


def measure_cell(
    now: CurrentCell, task: Task, completions: pd.DataFrame, rules: Sequence[str] = ()
) -> Exception | None:
    """Write scores.parquet and metrics.json from completions, and beams for `rules`, that are
    current.

    An error of the task's own code is recorded and returned.
    """
    assert now.measure_stamp is not None
    try:
        beams = read_parquet(now.place("beams")).to_pandas() if rules else None
        scores, metrics = measure(task, completions, beams=beams, rules=rules)
    except Exception as error:
        record_failure(now.folder, "measure", error)
        return error
    write_parquet(now.folder / "scores.parquet", scores, now.measure_stamp)
    write_json(now.folder / "metrics.json", {"address": now.measure_stamp, **metrics})
    return None


def missing_comparisons(run: RunFrames) -> list[Compared]:
    """The pairs of cells whose difference no current file says."""
    return [
        pair
        for pair in run.compared
        if run.current(pair.mine["address"]).comparison(
            run.current(pair.other["address"]), pair.file
        )
        is None
    ]


def write_comparisons(
    run: RunFrames, task: Callable[[str], Task] = load_task, *, resamples: int = RESAMPLES
) -> bool:
    """Write each comparison.json and noise.json that is missing; returns whether any was written.

    Whoever made the two cells, the comparison is of what they are now, on the same examples. A cell
    whose task cannot be loaded here keeps none.
    """
    written = False
    for pair in missing_comparisons(run):
        mine, other = (run.current(cell["address"]) for cell in (pair.mine, pair.other))
        try:
            plugin = task(pair.mine["task"])
        except UserError:
            continue
        scores, others = (
            read_parquet(c.folder / "scores.parquet").to_pandas() for c in (mine, other)
        )
        content = {
            "address": comparison_stamp(mine, other),
            "against": pair.other["address"],
            "against_loss": pair.other["loss"],
            **compare(plugin, scores, others, resamples=resamples),
        }
        write_json(mine.folder / f"{pair.file}.json", content)
        written = True
    return written
