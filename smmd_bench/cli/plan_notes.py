"""What a plan should make its user think about, before the hours of a run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..experiment.cell import Cell
from ..experiment.file import ExperimentFile
from ..plugin_system.tuned_label import untuned_label
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
    yield from _without_reference(run, cells)
    free = _free_bytes(run.path)
    if disk > free:
        yield (
            f"Weights take at most about {spell_bytes(disk)}, and the disk of {run.path} has "
            f"{spell_bytes(free)} left: free some, or choose another with --out."
        )


def tuning_notes(cells: Sequence[Cell]) -> Iterator[str]:
    """What the losses of one model are tuned over: the budget, each grid, and which of the grids
    lack the published setting."""
    tuned = {cell.loss: cell for cell in cells if cell.grid and cell.source is None}
    if not tuned:
        return
    budget = len(next(iter(tuned.values())).grid)
    seeds = len({cell.seed for cell in cells if cell.grid})
    yield (
        f"Tuned: {budget} configurations each of {len(tuned)} losses for "
        f"{seeds} seed{'s' * (seeds > 1)}, chosen on the validation examples of each."
    )
    for loss, cell in tuned.items():
        points = "; ".join(point.text for point in cell.grid)
        published = untuned_label(loss)
        tried = any((t.loss, t.recipe) == (published, cell.recipe) for t in cell.trials)
        candidate = "" if tried else f" (not {published} as published, which has its own row)"
        yield f"  {published}: {points}{candidate}"


def _without_reference(run: RunDirectory, cells: Sequence[Cell]) -> Iterator[str]:
    """A sentence for each model and task without cross-entropy, here and in the folder."""
    trained = [cell for cell in cells if not cell.is_base and cell.source is None]
    there = {(cell.model, cell.task) for cell in trained if cell.loss == REFERENCE}
    if not (lacking := {(cell.model, cell.task) for cell in trained} - there):
        return  # the folder of a large run need not be read
    held = run.manifest.get("cells", ())
    lacking -= {(cell["model"], cell["task"]) for cell in held if cell["loss"] == REFERENCE}
    for model, task in sorted(lacking):
        based = any(c.is_base and (c.model, c.task) == (model, task) for c in cells)
        other = (
            "losses are compared with the untuned model only"
            if based
            else "losses are compared with nothing"
        )
        yield f"No {REFERENCE} for {task} with {model}: {other}; add {REFERENCE} to the losses."


def _free_bytes(folder: Path) -> int:
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free
