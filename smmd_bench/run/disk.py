"""How much of the disk the weights of a run take."""

from collections.abc import Sequence

from ..experiment.cell import Cell
from .schedule import ENOUGH

_FLOATS_OF_A_STATE = 3  # weights, and AdamW's two moments


def disk_bytes(cells: Sequence[Cell], slots: int) -> tuple[int, int]:
    """Bytes of weights that lie on the disk when these cells are finished, and at most before that,
    where `slots` jobs run at a time; those of `keep_epochs` stay.

    A cell in training has the Trainer's last two states; trained ones keep every epoch until a job
    has decoded them, which starts when enough of a base wait.
    """
    trained = [cell for cell in cells if not (cell.is_base or cell.source or cell.grid)]
    saved = {cell: _saved_bytes(cell) for cell in trained}
    kept = {c: b * (1 + c.recipe.epochs * c.recipe.keep_epochs) for c, b in saved.items()}
    epochs = sorted((b * cell.recipe.epochs for cell, b in saved.items()), reverse=True)
    bases = len({(cell.model, cell.engine, cell.recipe.dtype) for cell in trained})
    waiting = sum(epochs[: slots + 2 * ENOUGH * bases])
    states = sum(sorted(saved.values(), reverse=True)[:slots]) * _FLOATS_OF_A_STATE * 2
    end = sum(kept.values())
    return end, end + waiting + states


def _saved_bytes(cell: Cell) -> int:
    """Of one epoch's weights, in float32: those of full fine-tuning, or of an adapter."""
    from ..models.loading import adapter_weights

    if cell.recipe.method == "full":
        return 4 * cell.card.parameter_count()
    return 4 * adapter_weights(cell.card, cell.recipe.lora_targets, cell.recipe.lora_rank)
