"""What is found of the models before anything starts, and by a dry run: weights that are missing,
tokenizers without numbers, processors, targets of LoRA that are no layer."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..contracts import Checkpoint
from ..experiment.cell import Cell

Pixels = tuple[str, int | None, int | None]
"""What a processor follows from: the model, and the limits on a picture's area."""


class Readers(NamedTuple):
    """The tokenizer of each model, and the processor of each that reads pictures."""

    tokenizers: Mapping[str, Any]
    processors: Mapping[Pixels, Any]


def check_models(cells: Sequence[Cell]) -> Readers:
    """Check the models of cells; returns what reads their prompts.

    Raises UserError for the first mistake. The weights of a hub model that a plan does not fetch
    are not looked for.
    """
    from ..models.checkpoints import require_safetensors
    from ..models.loading import require_all_weights, require_lora_targets
    from ..models.processor import load_processor
    from ..models.tokenizers import load_tokenizer

    models = {cell.model: cell.card for cell in cells}
    for card in models.values():
        if card.weights_are_here:
            require_safetensors(Checkpoint(card.name, "base", card.folder))
            require_all_weights(card.folder)
    tokenizers = {model: load_tokenizer(card.folder) for model, card in models.items()}
    processors = {
        pixels: load_processor(models[pixels[0]].folder, *pixels[1:])
        for pixels in dict.fromkeys(pixels_of(cell) for cell in cells if cell.reads_images)
    }
    settings = {(c.model, c.recipe.numeric_rule, c.recipe.chat_template): c for c in cells}
    for cell in settings.values():
        _check_tokenizer(cell, tokenizers[cell.model])
    trained = [cell.owner for cell in cells if not cell.is_base and cell.recipe.method == "lora"]
    for model, targets in dict.fromkeys((c.model, c.recipe.lora_targets) for c in trained):
        require_lora_targets(models[model], targets)
    return Readers(tokenizers, processors)


def pixels_of(cell: Cell) -> Pixels:
    """What a cell's processor follows from."""
    return cell.model, cell.engine_settings.min_pixels, cell.engine_settings.max_pixels


def _check_tokenizer(cell: Cell, tokenizer: Any) -> None:
    from ..encoding.numbers import numeric_vocabulary
    from ..encoding.prompts import encode_prompts, encode_targets

    numeric_vocabulary(tokenizer, cell.recipe.numeric_rule)
    cell.card.require_numeric_tokens(len(numeric_vocabulary(tokenizer, "integer")))
    encode_prompts(tokenizer, ["0"], chat=cell.recipe.chat_template)
    encode_targets(tokenizer, ["0"], chat=cell.recipe.chat_template)
