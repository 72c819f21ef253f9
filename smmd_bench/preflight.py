"""What is found before anything starts: tokenizers without numbers, missing data, broken images,
no room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .contracts import Example, Progress, Split
from .errors import UserError
from .experiment import Cell
from .manifest import examples_there, shortage

_SPLITS: tuple[Split, ...] = ("train", "validation", "test")


def preflight(cells: Sequence[Cell], progress: Progress) -> None:
    """Find the user's mistakes, and make every set of examples once, here and not in each worker.

    Raises UserError for the first mistake.
    """
    tokenizers = {cell.model: _tokenizer(cell) for cell in cells}
    processors = {_reads(cell): _processor(cell) for cell in cells}
    settings = {(c.model, c.recipe.numeric_rule, c.recipe.chat_template): c for c in cells}
    for cell in settings.values():
        _check_tokenizer(cell, tokenizers[cell.model])
    made: dict[Any, Sequence[Example]] = {}
    fitting = set()
    for cell in cells:
        for split in _SPLITS if cell.source is None and not cell.is_base else _SPLITS[-1:]:
            data = (cell.task, split, cell.data_seed, cell.size(split))
            if data not in made:
                progress(f"examples of {cell.task}, {split}", 0, 1)
                examples = cell.task_plugin.examples(split, cell.data_seed, cell.size(split))
                made[data] = () if split == "train" else examples  # millions need not stay
                progress(f"examples of {cell.task}, {split}", 1, 1)
                _say_shortage(cell, split, len(examples), progress)
                _check_images(cell, split, examples, progress)
            room = (*data, cell.model, cell.engine_settings, cell.recipe.chat_template)
            if split != "train" and room not in fitting:  # training checks its own, see there
                _check_room(
                    cell, split, made[data], tokenizers[cell.model], processors[_reads(cell)]
                )
                fitting.add(room)


def _tokenizer(cell: Cell) -> Any:
    from .training.models import load_tokenizer

    return load_tokenizer(cell.card.folder)


def _reads(cell: Cell) -> tuple[str, bool, int | None, int | None]:
    """What a processor follows from."""
    settings = cell.engine_settings
    return cell.model, cell.reads_images, settings.min_pixels, settings.max_pixels


def _processor(cell: Cell) -> Any | None:
    """The processor of the checkpoint where the task has images."""
    from .vision.processor import load_processor

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
    from .vision.images import check_images

    files = (file for example in examples for file in example.images)
    what = f"images of {cell.task}, {split}"
    check_images(files, lambda _, done, total: progress(what, done, total))


def _check_tokenizer(cell: Cell, tokenizer: Any) -> None:
    from .numbers import numeric_vocabulary
    from .training.data import encode_prompts, encode_targets

    numeric_vocabulary(tokenizer, cell.recipe.numeric_rule)
    cell.card.require_numeric_tokens(len(numeric_vocabulary(tokenizer, "integer")))
    encode_prompts(tokenizer, ["0"], chat=cell.recipe.chat_template)
    encode_targets(tokenizer, ["0"], chat=cell.recipe.chat_template)


def _check_room(
    cell: Cell, split: Split, examples: Sequence[Example], tokenizer: Any, processor: Any | None
) -> None:
    """Raise UserError where a prompt and what may follow it are longer than the context."""
    from .scoring.checkpoints import at_most_positions, context_length
    from .training.data import encode_targets
    from .vision.processor import takes_pixel_limits
    from .vision.prompts import encode_examples, expanded_lengths, images_of

    chat, new = cell.recipe.chat_template, cell.task_plugin.max_new_tokens
    prompts = encode_examples(tokenizer, processor, examples, chat=chat)
    lengths = expanded_lengths(processor, prompts, images_of(examples))
    after = [new] * len(prompts)
    if split == "test":  # whose probes read the target
        targets = encode_targets(tokenizer, [e.target for e in examples], chat=chat)
        after = [max(new, len(target)) for target in targets]
    needed = [length + more for length, more in zip(lengths, after, strict=True)]
    context = context_length(cell.card.folder, cell.engine_settings)
    longest = max(needed, default=0)
    if longest <= context:
        return
    worst = needed.index(longest)
    remedy = (
        f"raise max_length to {longest - new} with --set max_length={longest - new}"
        if at_most_positions(cell.card.folder, longest) == longest
        else "take a model with more positions"
    )
    if processor is not None and takes_pixel_limits(processor):
        remedy += ", or fewer pixels of an image with --set max_pixels=N"
    images = " with its images" if lengths[worst] > len(prompts[worst]) else ""
    raise UserError(
        f"{cell.task}, {split}: example {examples[worst].uid} needs room for {longest} tokens (a "
        f"prompt of {lengths[worst]}{images} and up to {after[worst]} after it), but the context "
        f"of {cell.model} is {context} here, and prompts are never cut: {remedy}."
    )
