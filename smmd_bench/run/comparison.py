"""What is computed from a cell's completions: scores, metrics, the difference from another cell."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from ..contracts import Progress, Task
from ..errors import UserError
from ..experiment.cell import Cell
from ..plugin_system.registry import load_task
from ..results.baselines import Compared
from ..results.frames import RunFrames
from ..scoring.measure import COMPARISON, compare, measure
from ..scoring.statistics import RESAMPLES
from ..storage.cell import StoredCell
from ..storage.files import making, read_parquet, write_json, write_parquet
from .run_directory import record_failure


def measure_cells(cells: Sequence[Cell], run: Path, progress: Progress) -> dict[Cell, Exception]:
    """Measure those of these cells that are decoded and not measured; the errors of their tasks."""
    failures = {}
    for number, cell in enumerate(cells):
        now = cell.stored(run)
        if now.is_decoded and now.metrics is None:
            progress("measure", number, len(cells))
            if (error := measure_cell(now, cell.task_plugin, cell.decoders)) is not None:
                failures[cell] = error
    progress("measure", len(cells), len(cells))
    return failures


def measure_cell(now: StoredCell, task: Task, rules: Sequence[str] = ()) -> Exception | None:
    """Write scores and metrics of a decoded cell; an error of its task is recorded and returned."""
    completions, beams = now.place("completions"), now.place("beams")
    assert now.measured is not None
    assert completions is not None
    try:
        found = read_parquet(beams).to_pandas() if rules and beams is not None else None
        frame: pd.DataFrame = read_parquet(completions).to_pandas()
        scores, metrics = measure(task, frame, beams=found, rules=rules)
    except Exception as error:
        record_failure(now.run, now.key, "measure", error)
        return error
    with making(now.measured) as folder:
        write_parquet(folder / "scores.parquet", scores)
        write_json(folder / "metrics.json", metrics)
    return None


def missing_comparisons(run: RunFrames) -> list[Compared]:
    """The pairs of cells whose difference no file says."""
    missing = []
    for pair in run.compared:
        mine, other = (run.current(cell["address"]) for cell in (pair.mine, pair.other))
        if mine.comparison(other, COMPARISON) is None:
            missing.append(pair)
    return missing


def write_comparisons(
    run: RunFrames, task: Callable[[str], Task] = load_task, *, resamples: int = RESAMPLES
) -> bool:
    """Write each comparison.json that is missing, where the task can be loaded; whether any was."""
    written = False
    for pair in missing_comparisons(run):
        mine, other = (run.current(cell["address"]) for cell in (pair.mine, pair.other))
        try:
            plugin = task(pair.mine["task"])
        except UserError:
            continue
        places = [cell.place("scores") for cell in (mine, other)]
        scores = [read_parquet(place).to_pandas() for place in places if place is not None]
        with making(mine.compared_with(other, COMPARISON)) as folder:
            write_json(folder / "comparison.json", compare(plugin, *scores, resamples=resamples))
        written = True
    return written
