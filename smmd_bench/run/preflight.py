"""What is found before anything starts: tokenizers without numbers, missing data or weights, broken
images, tasks that cannot be scored, examples that are too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..contracts import Checkpoint, Example, Progress, Split
from ..errors import UserError
from ..experiment.cell import Cell
from .manifest import examples_there, shortage
from .rehearsal import rehearse
from .room import Need, decoding_need, require_room, training_need

_SPLITS: tuple[Split, ...] = ("train", "validation", "test")


def preflight(cells: Sequence[Cell], progress: Progress) -> None:
    """Find the user's mistakes, and make every set of examples once, here and not in each worker.

    Raises UserError for the first mistake; of examples that are too long, for the longest.
    """
    from ..models.checkpoints import require_safetensors
    from ..models.processor import takes_pixel_limits

    for card in {cell.model: cell.card for cell in cells}.values():
        require_safetensors(Checkpoint(card.name, "base", card.folder))
    tokenizers = {cell.model: _tokenizer(cell) for cell in cells}
    processors = {_reads(cell): _processor(cell) for cell in cells}
    settings = {(c.model, c.recipe.numeric_rule, c.recipe.chat_template): c for c in cells}
    for cell in settings.values():
        _check_tokenizer(cell, tokenizers[cell.model])
    made: dict[Any, Sequence[Example]] = {}
    needs: dict[Any, Need | None] = {}
    for cell in cells:
        for split in _SPLITS if cell.source is None and not cell.is_base else _SPLITS[-1:]:
            data = (cell.task, split, cell.data_seed, cell.size(split))
            if data not in made:
                made[data] = _examples(cell, split, progress)
            reads = (cell.model, cell.engine_settings, cell.recipe.chat_template)
            if (*data, *reads) not in needs:
                readers = tokenizers[cell.model], processors[_reads(cell)]
                needs[(*data, *reads)] = _need(cell, split, made[data], *readers, progress)
    limited = any(p is not None and takes_pixel_limits(p) for p in processors.values())
    require_room((need for need in needs.values() if need is not None), pixels=limited)


def _examples(cell: Cell, split: Split, progress: Progress) -> Sequence[Example]:
    """The examples of a split, with images that can be read and names that scoring can take."""
    progress(f"examples of {cell.task}, {split}", 0, 1)
    examples = cell.task_plugin.examples(split, cell.data_seed, cell.size(split))
    progress(f"examples of {cell.task}, {split}", 1, 1)
    _say_shortage(cell, split, len(examples), progress)
    if not len(examples):
        raise UserError(
            f"{cell.task} has no example of the {split} split: ask for at least one with "
            f"--{split}-examples, or copy its data again."
        )
    _check_images(cell, split, examples, progress)
    if split != "train":
        rehearse(cell, split, examples)
    return examples


def _need(
    cell: Cell,
    split: Split,
    examples: Sequence[Example],
    tokenizer: Any,
    processor: Any | None,
    progress: Progress,
) -> Need | None:
    """The largest need for room, where it is more than there is."""
    if split == "train":
        return training_need(cell, examples, tokenizer, processor)
    need, beyond = decoding_need(cell, split, examples, tokenizer, processor)
    if beyond:
        progress(
            f"{cell.task}, {split}: {beyond:,} of {len(examples):,} targets are longer than "
            f"{cell.task_plugin.max_new_tokens} tokens of {cell.model}, the most that a completion "
            "may have: no completion can equal them.",
            0,
            0,
        )
    return need


def _tokenizer(cell: Cell) -> Any:
    from ..models.loading import load_tokenizer

    return load_tokenizer(cell.card.folder)


def _reads(cell: Cell) -> tuple[str, bool, int | None, int | None]:
    """What a processor follows from."""
    settings = cell.engine_settings
    return cell.model, cell.reads_images, settings.min_pixels, settings.max_pixels


def _processor(cell: Cell) -> Any | None:
    """The processor of the checkpoint where the task has images."""
    from ..models.processor import load_processor

    _, reads_images, *pixels = _reads(cell)
    return load_processor(cell.card.folder, *pixels) if reads_images else None


def _say_shortage(cell: Cell, split: Split, there: int, progress: Progress) -> None:
    """Say that examples are missing, where planning could not know it."""
    sentence = shortage(cell, split, there)
    if sentence is not None and there < examples_there(cell, split):
        progress(sentence, 0, 0)


def _check_images(
    cell: Cell, split: Split, examples: Sequence[Example], progress: Progress
) -> None:
    """Read every image of a split once; raises UserError where one is absent or broken."""
    if not cell.reads_images:
        return
    from ..encoding.images import check_images

    files = (file for example in examples for file in example.images)
    what = f"images of {cell.task}, {split}"
    check_images(files, lambda _, done, total: progress(what, done, total))


def _check_tokenizer(cell: Cell, tokenizer: Any) -> None:
    from ..encoding.numbers import numeric_vocabulary
    from ..encoding.prompts import encode_prompts, encode_targets

    numeric_vocabulary(tokenizer, cell.recipe.numeric_rule)
    cell.card.require_numeric_tokens(len(numeric_vocabulary(tokenizer, "integer")))
    encode_prompts(tokenizer, ["0"], chat=cell.recipe.chat_template)
    encode_targets(tokenizer, ["0"], chat=cell.recipe.chat_template)
