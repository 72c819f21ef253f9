"""What a plan should make its user think about, before the hours of a run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

from ..experiment.cell import Cell
from ..experiment.file import ExperimentFile
from ..results.opponents import REFERENCE
from ..run.run_directory import RunDirectory
from ..storage.sizes import spell_bytes


def plan_notes(
    plan: ExperimentFile, run: RunDirectory, cells: Sequence[Cell], disk: int
) -> Iterator[str]:
    """Sentences on what was given twice, on losses without cross-entropy to be compared with, and
    on a disk with less room than the `disk` bytes that the weights take."""
    if again := list(dict.fromkeys(text for part in plan.experiments for text in part.repeated)):
        yield f"Given more than once, and counted once: {', '.join(again)}."
    trained = [cell for cell in cells if not cell.is_base and cell.source is None]
    with_reference = {(cell.model, cell.task) for cell in trained if cell.loss == REFERENCE}
    for model, task in dict.fromkeys((cell.model, cell.task) for cell in trained):
        if (model, task) not in with_reference and not run.path.exists():
            yield f"No {REFERENCE} for {task} with {model} to compare with: add it to the losses."
    there = next(path for path in (run.path, *run.path.absolute().parents) if path.exists())
    if disk > (free := shutil.disk_usage(there).free):
        yield (
            f"Weights take at most about {spell_bytes(disk)}, and the disk of {run.path} has "
            f"{spell_bytes(free)} left: free some, or choose another with --out."
        )


def tuning_notes(cells: Sequence[Cell]) -> Iterator[str]:
    """What the losses of one model are tuned over."""
    tuned = {cell.loss: cell for cell in cells if cell.grid and cell.source is None}
    for loss, cell in tuned.items():
        yield f"{loss}: the best of {'; '.join(point.text for point in cell.grid)} by validation."
