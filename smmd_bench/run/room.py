"""Whether every example fits the context.

Training reads prompt and target, which `max_length` bounds together. Decoding reads the prompt,
which it bounds too, and writes up to `max_new_tokens`; probes of the test split read the target.
"""

from collections.abc import Sequence
from typing import Any

from ..contracts import Example, Split
from ..errors import UserError
from ..experiment.cell import Cell


def require_room(
    cell: Cell, split: Split, examples: Sequence[Example], tokenizer: Any, processor: Any | None
) -> int:
    """Raise UserError for the example that needs the most room, where there is less; and for a
    prompt to decode that has no token. Returns how many targets no completion can equal, because
    they are longer than one may be."""
    from ..models.checkpoints import at_most_positions

    training, new = split == "train", cell.task_plugin.max_new_tokens
    if training:
        most = at_most_positions(cell.card.folder, cell.recipe.max_length)
    else:
        most = at_most_positions(cell.card.folder, cell.engine_settings.max_model_length)
    counts = _counts(cell, examples, tokenizer, processor)
    if not training and (empty := [uid for uid, prompt, _ in counts if not prompt]):
        raise UserError(
            f"{cell.task}, {split}: the prompt of example {empty[0]} has no token with the "
            f"tokenizer of {cell.model}: give it a text, or take the example out of the data."
        )
    probed = split == "test"
    needs = [
        (prompt + (target if training else max(new, target * probed)), prompt, uid)
        for uid, prompt, target in counts
    ]
    needed, prompt, uid = max(needs)
    if needed > most:
        length = needed - (0 if training else new)
        remedy = f"raise max_length to {length} with --set max_length={length}"
        if at_most_positions(cell.card.folder, needed) < needed:
            remedy = f"take a model with {needed} positions or more"
        elif cell.reads_images:
            remedy += ", or give fewer pixels of an image with --set max_pixels=N"
        raise UserError(
            f"{cell.task}, {split}: example {uid} needs the most room, {needed} tokens (a prompt "
            f"of {prompt} and {needed - prompt} after it), but {cell.model} has room for {most}, "
            f"and nothing is ever cut: {remedy}."
        )
    return 0 if training else sum(target - 1 > new for _, _, target in counts)


def _counts(
    cell: Cell, examples: Sequence[Example], tokenizer: Any, processor: Any | None
) -> list[tuple[str, int, int]]:
    """Of each example: its uid, the tokens of its prompt with images, and of its target."""
    from ..encoding.prompts import encode_examples, encode_targets, expanded_lengths, images_of

    chat = cell.recipe.chat_template
    prompts = encode_examples(tokenizer, processor, examples, chat=chat)
    lengths = expanded_lengths(processor, prompts, images_of(examples))
    targets = encode_targets(tokenizer, [example.target for example in examples], chat=chat)
    found = zip(examples, lengths, targets, strict=True)
    return [(example.uid, length, len(target)) for example, length, target in found]
