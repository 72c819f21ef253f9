"""The export of some cells of a run: a folder each, whole or absent."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ...errors import UserError
from ...results.run_model import again
from .eval_results import write_eval_results
from .every_eval_ever import write_every_eval_ever
from .exported_cell import ExportedCell
from .lm_eval_files import write_lm_eval_files
from .model_card import write_model_card
from .weights import write_weights

FORMATS = ("card", "eval_results", "lm_eval", "every_eval_ever")


def write_export(
    cells: Sequence[ExportedCell],
    out: Path,
    formats: Collection[str] = FORMATS,
    *,
    merged: bool = False,
) -> tuple[list[Path], list[str]]:
    """Write OUT/NAME of every cell: its weights where they are kept, and its results as `formats`.

    The run is only read. The second value has a sentence for each thing that is left out.

    Raises UserError, before anything is written, where a folder of that name is there already or
    `out` is inside the run.
    """
    folders = [out / cell.name for cell in cells]
    for cell, folder in zip(cells, folders, strict=True):
        if out.resolve().is_relative_to(cell.run.path.resolve()):
            raise UserError(f"{out} is inside the run {cell.run.path}: choose another with --out.")
        if folder.exists():
            raise UserError(f"{folder} is there already: delete it, or choose another with --out.")
    notes: list[str] = []
    made = [path for path in (out, *out.parents) if not path.exists()]
    for cell, folder in zip(cells, folders, strict=True):
        part = folder.with_name(f".{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        try:
            notes += _write_cell(cell, part, formats, merged=merged)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
            for path in made:  # nothing is left of an export that fails
                with suppress(OSError):  # it is not empty
                    path.rmdir()
    return folders, list(dict.fromkeys(notes))


def _write_cell(
    cell: ExportedCell, folder: Path, formats: Collection[str], *, merged: bool
) -> Iterator[str]:
    """Write one cell; yields what is left out."""
    if not write_weights(cell, folder, merged=merged):
        lost = f"; {again(cell.run.path, cell.now)}" if cell.is_trained else ""
        yield (
            f"{cell.title} has no weights in {cell.now.folder}: "
            f"its results alone are exported{lost}."
        )
    elif cell.has_adapter and not merged and cell.hub_base is None:
        yield (
            f"The adapter of {cell.title} names its base by a path of this machine: give --merged "
            "for weights that load elsewhere."
        )
    if "card" in formats:
        write_model_card(cell, folder, merged=merged)
    if "eval_results" in formats and (left_out := write_eval_results(cell, folder)):
        yield left_out
    if "lm_eval" in formats:
        write_lm_eval_files(cell, folder)
    if "every_eval_ever" in formats:
        write_every_eval_ever(cell, folder)
