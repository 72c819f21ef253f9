"""Whether every example fits the context: the one that needs the most room, over all splits.

Training reads prompt and target, which `max_length` bounds together. Decoding reads the prompt,
which it bounds too, and writes up to `max_new_tokens`; probes of the test split read the target.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..contracts import Example, Split
from ..errors import UserError
from ..experiment.cell import Cell

_CHUNK = 1000


@dataclass(frozen=True)
class Need:
    """The tokens that an example of a cell needs: of its prompt, with images, and after it."""

    cell: Cell
    split: Split
    uid: str
    prompt: int
    after: int
    images: bool

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.prompt + self.after

    @property
    def max_length(self) -> int:
        """The least `max_length` that gives room, where the model has the positions."""
        new = 0 if self.split == "train" else self.cell.task_plugin.max_new_tokens
        return self.tokens - new

    @property
    def positions_suffice(self) -> bool:
        """Whether the model has positions for so many tokens."""
        from ..models.checkpoints import at_most_positions

        return at_most_positions(self.cell.card.folder, self.tokens) == self.tokens


def room_for(cell: Cell, split: Split) -> int:
    """The most tokens that training, or decoding of another split, may read and write."""
    from ..models.checkpoints import at_most_positions, context_length

    if split == "train":
        return at_most_positions(cell.card.folder, cell.recipe.max_length)
    return context_length(cell.card.folder, cell.engine_settings)


def largest_need(
    cell: Cell, split: Split, examples: Sequence[Example], tokenizer: Any, processor: Any | None
) -> tuple[Need | None, int]:
    """The example of a split that needs the most room, None where all fit; and how many targets
    are longer than a completion may be.

    Raises UserError for a prompt to decode that has no token. A text of n ASCII bytes has at most n
    tokens, so most training examples need not be tokenised.
    """
    worst, beyond, most = None, 0, room_for(cell, split)
    training, new = split == "train", cell.task_plugin.max_new_tokens
    around = _tokens_around(tokenizer, chat=cell.recipe.chat_template)
    for start in range(0, len(examples), _CHUNK):
        chunk = examples[start : start + _CHUNK]
        if training and processor is None:
            chunk = [e for e in chunk if not _is_at_most(e, most - around)]
        counts = _counts(cell, chunk, tokenizer, processor) if chunk else []
        for example, (prompt, target, images) in zip(chunk, counts, strict=True):
            if not (prompt or training):
                raise UserError(
                    f"{cell.task}, {split}: the prompt of example {example.uid} has no token with "
                    f"the tokenizer of {cell.model}: give it a text, or take the example out of "
                    "the data."
                )
            after = target if training else max(new, target if split == "test" else 0)  # probes
            need = Need(cell, split, example.uid, prompt, after, images)
            if need.tokens > (worst.tokens if worst else most):
                worst = need
            beyond += not training and target - 1 > new  # less the end-of-sequence token
    return worst, beyond


def require_room(needs: Sequence[Need], *, pixels: bool = False) -> None:
    """Raise UserError where examples do not fit: it names the largest need, and its remedy is one
    for all of them. `pixels`: a processor takes limits on the pixels of an image.
    """
    if not needs:
        return
    length = max(need.max_length for need in needs)
    beyond = [need for need in needs if not need.positions_suffice]
    worst = max(beyond or needs, key=lambda n: n.tokens if beyond else n.max_length)
    if not beyond:
        remedy = f"raise max_length to {length} with --set max_length={length}"
    else:
        remedy = f"take a model with {worst.tokens} positions or more"
        if length > worst.cell.recipe.max_length:
            remedy += f" and add --set max_length={length}"
    if pixels and worst.images:
        remedy += ", or fewer pixels of an image with --set max_pixels=N"
    cell, images = worst.cell, " with its images" if worst.images else ""
    training = worst.split == "train"
    what = f"a target of {worst.after}" if training else f"up to {worst.after} after it"
    where = f"training {cell.model} has" if training else f"the context of {cell.model} has"
    raise UserError(
        f"{cell.task}, {worst.split}: example {worst.uid} needs the most room, {worst.tokens} "
        f"tokens (a prompt of {worst.prompt}{images} and {what}), but {where} room for "
        f"{room_for(cell, worst.split)}, and nothing is ever cut: {remedy}."
    )


def _counts(
    cell: Cell, examples: Sequence[Example], tokenizer: Any, processor: Any | None
) -> list[tuple[int, int, bool]]:
    """Of each example: tokens of its prompt with images, of its target, whether it has images."""
    from ..encoding.prompts import encode_examples, encode_targets, expanded_lengths, images_of

    chat = cell.recipe.chat_template
    prompts = encode_examples(tokenizer, processor, examples, chat=chat)
    lengths = expanded_lengths(processor, prompts, images_of(examples))
    targets = encode_targets(tokenizer, [example.target for example in examples], chat=chat)
    return [
        (length, len(target), length > len(ids))
        for ids, length, target in zip(prompts, lengths, targets, strict=True)
    ]


def _is_at_most(example: Example, tokens: int) -> bool:
    """Whether so many tokens are enough, by its bytes: a token has at least one. Other characters
    than ASCII may grow when a tokenizer normalises them, and are counted."""
    texts = (example.prompt, example.target)
    return all(text.isascii() for text in texts) and sum(map(len, texts)) <= tokens


def _tokens_around(tokenizer: Any, *, chat: bool) -> int:
    """At most so many tokens stand around the bytes of a prompt and its target: special tokens, a
    space that is put in front, and a chat template by its bytes."""
    from ..encoding.prompts import encode_prompts, encode_targets

    ids = encode_prompts(tokenizer, ["0"], chat=chat) + encode_targets(tokenizer, ["0"], chat=chat)
    if not chat:
        return sum(map(len, ids))
    turn = [{"role": "user", "content": "0"}]
    text = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
    return sum(map(len, ids)) + len(text.encode())
