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
from ..storage.files import read_parquet, write_folder, write_json, write_parquet
from .run_directory import record_failure


def measure_cells(
    cells: Sequence[Cell], run: Path, progress: Progress
) -> dict[Cell, Exception]:
    """Measure those of these cells that are decoded and not measured; the errors of their tasks."""
    failures = {}
    for number, cell in enumerate(cells):
        stored = cell.stored(run)
        if not stored.is_decoded or stored.metrics is not None:
            continue
        progress("measure", number, len(cells))
        error = measure_cell(stored, cell.task_plugin, cell.decoders)
        if error is not None:
            failures[cell] = error

    progress("measure", len(cells), len(cells))
    return failures


def measure_cell(
    stored: StoredCell, task: Task, rules: Sequence[str] = ()
) -> Exception | None:
    """Write scores and metrics of a decoded cell; an error of its task is recorded and returned."""
    completions = stored.place("completions")
    beams = stored.place("beams")
    assert stored.measured is not None
    assert completions is not None
    try:
        frame: pd.DataFrame = read_parquet(completions).to_pandas()
        beam_frame = None
        if rules and beams is not None:
            beam_frame = read_parquet(beams).to_pandas()
        scores, metrics = measure(task, frame, beams=beam_frame, rules=rules)
    except Exception as error:
        # The parser or a metric is a plugin's own code: the other cells go on.
        record_failure(stored.run, stored.key, "measure", error)
        return error

    with write_folder(stored.measured) as folder:
        write_parquet(folder / "scores.parquet", scores)
        write_json(folder / "metrics.json", metrics)
    return None


def missing_comparisons(run: RunFrames) -> list[Compared]:
    """Find the pairs of cells whose difference no file says."""
    missing = []
    for pair in run.compared:
        cell = run.current(pair.mine["address"])
        opponent = run.current(pair.other["address"])
        if cell.comparison(opponent, COMPARISON) is None:
            missing.append(pair)
    return missing


def write_comparisons(
    run: RunFrames,
    task: Callable[[str], Task] = load_task,
    *,
    resamples: int = RESAMPLES,
) -> bool:
    """Write each comparison.json that is missing, where the task can be loaded; returns whether
    any was.

    task: loads one by its name.
    """
    has_written = False
    for pair in missing_comparisons(run):
        cell = run.current(pair.mine["address"])
        opponent = run.current(pair.other["address"])
        try:
            plugin = task(pair.mine["task"])
        except UserError:
            continue  # its plugin is not here, and reports show the rest

        places = (cell.place("scores"), opponent.place("scores"))
        scores = [
            read_parquet(place).to_pandas() for place in places if place is not None
        ]
        comparison = compare(plugin, *scores, resamples=resamples)
        with write_folder(cell.compared_with(opponent, COMPARISON)) as folder:
            write_json(folder / "comparison.json", comparison)
        has_written = True

    return has_written
