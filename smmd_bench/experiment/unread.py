"""What is given and that nothing selected reads is refused: it would promise another experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import UserError
from ..plugin_system.checked_task import require_seed
from .cell import Cell

if TYPE_CHECKING:
    from .experiment import Experiment


def _has_adapter(cell: Cell) -> bool:
    return cell.recipe.method == "lora" and not cell.is_base


_READERS: Mapping[str, tuple[str, Callable[[Cell], bool]]] = {
    **dict.fromkeys(
        ("lora_rank", "lora_alpha", "lora_dropout", "lora_targets"),
        ("add --set method=lora", _has_adapter),
    ),
    **dict.fromkeys(
        ("min_pixels", "max_pixels"),
        ("name a task with images", lambda cell: cell.reads_images),
    ),
    "probe_vectors": (
        "set probe_examples to more than 0",
        lambda cell: cell.recipe.probe_examples != 0,
    ),
}
"""Recipe settings that not every cell reads: what would read one, and whether a cell does."""


def require_read(experiments: Sequence[Experiment]) -> None:
    """Raise UserError for a recipe setting, a data seed or `transfers` that is read nowhere in the
    experiments that give it."""
    given: dict[str, list[Cell]] = {}
    for experiment in experiments:
        for key in (key for key, value in experiment.recipe.items() if value is not None):
            given.setdefault(key, []).extend(experiment.cells)
    for key, (remedy, reads) in _READERS.items():
        if key in given and not any(map(reads, given[key])):
            raise UserError(
                f"The recipe setting {key} is read by nothing that is asked for: leave it out, or "
                f"{remedy}."
            )
    for seed in dict.fromkeys(part.data_seed for part in experiments if part.tune_trials is None):
        cells = {c.task: c for part in experiments if part.data_seed == seed for c in part.cells}
        require_seed(((cell.task_plugin, cell.splits) for cell in cells.values()), seed)
    alone = [part for part in experiments if not part.transfers]
    tasks = [cell.task_plugin for part in alone for cell in part.cells]
    if alone and not any(getattr(task, "transfers", ()) for task in tasks):
        raise UserError(
            "No task that is asked for has a test of transfer: leave out --no-transfers."
        )
