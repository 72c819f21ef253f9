"""What a canary reads: training prompts with their targets, and a picture. It imports no torch.

Every checkpoint of a task reads the same sequences, whatever its loss and seed, so that recorded
canaries can be compared with one another.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, cycle, islice
from pathlib import Path
from typing import Any

from ..contracts import Canary, Example
from ..encoding.prompts import (
    encode_examples,
    encode_image_prompts,
    encode_targets,
    text_after_images,
)
from ..storage.addresses import cache_folder
from ..storage.files import atomic

TEXTS = (
    "What is 12 + 345? 357",
    "Calculate (7 - 28)*9/3. -63",
    "A farmer has 160 sheep and sells 48. How many are left? 112",
    "The time is 10:42.",
)
"""What a canary reads where there is no training data: numbers, because fine-tuning moves those."""

SEQUENCES = 24
# of all sequences, where that leaves at least SEQUENCES_WITH_PICTURES
MOST_TOKENS = 1024
SEQUENCES_WITH_PICTURES = 8
CANDIDATES = 128  # examples, evenly spaced, of which the shortest are read
SCORED = 8  # the first tokens of each target: an engine makes one request a token
# tokens of whole blocks of vLLM's prefix cache: of 32 on a CPU, of 16 on a GPU
BLOCK = 128
CACHED = 160
"""Tokens of the one long sequence, whose first blocks a prefix cache holds: keys of other weights
that are left there are seen by the tokens after it."""
SIZE = 112  # pixels of a side of the picture
# token ids, how many of the last ones are scored
_Sequence = tuple[tuple[int, ...], int]


@dataclass(frozen=True)
class CanaryTexts:
    """What a canary reads: sequences of token ids, how many of the last tokens of each it scores,
    and how many of the last sequences have a placeholder for the canary's picture."""

    token_ids: tuple[tuple[int, ...], ...]
    scored: tuple[int, ...]
    pictures: int = 0


def general_texts(tokenizer: Any, processor: Any | None = None) -> CanaryTexts:
    """The sequences of `TEXTS`; with the model's processor comes one that reads a picture."""
    rows = [tokenizer(text, add_special_tokens=True)["input_ids"] for text in TEXTS]
    scored = [len(row) - 1 for row in rows]
    if processor is not None:
        (ids,) = encode_image_prompts(processor, [TEXTS[-1]], [1])
        rows.append(ids)
        scored.append(text_after_images(ids, processor.image_token_id))
    return CanaryTexts(
        tuple(map(tuple, rows)), tuple(scored), int(processor is not None)
    )


def canary_texts(
    examples: Sequence[Example],
    tokenizer: Any,
    processor: Any | None,
    longest: int,
    *,
    chat: bool = False,
) -> CanaryTexts:
    """The shortest of evenly spaced training examples, each up to the first `SCORED` tokens of its
    target; then one long sequence of several examples on end, of at most `longest` tokens.

    With a processor, prompts with one picture read the canary's own in its place, behind the
    general texts. Without any example that fits there are the general texts alone.
    """
    count = min(CANDIDATES, len(examples))
    candidates = [examples[k * len(examples) // count] for k in range(count)]
    if processor is not None:
        candidates = [example for example in candidates if len(example.images) == 1]
    prompts = encode_examples(tokenizer, processor, candidates, chat=chat)
    targets = encode_targets(
        tokenizer, [example.target for example in candidates], chat=chat
    )

    # The keys of a dict: a sequence that two examples share is read once, in the order of both.
    unique: dict[_Sequence, None] = {}
    for prompt, target in zip(prompts, targets, strict=True):
        ids = (*prompt, *target[:SCORED])
        if prompt and len(ids) <= longest:
            unique[ids, len(target[:SCORED])] = None
    shortest = sorted(unique, key=lambda sequence: len(sequence[0]))

    general = general_texts(tokenizer, processor)
    if not shortest:
        return general
    if processor is not None:
        texts = len(general.token_ids) - general.pictures
        sequences = list(zip(general.token_ids, general.scored, strict=True))[:texts]
        pictures = shortest[:SEQUENCES_WITH_PICTURES]
        return _join([*sequences, *pictures], len(pictures))

    # An engine makes a request for each scored token: long prompts cost it the most.
    ends = accumulate(len(ids) for ids, _ in shortest[:SEQUENCES])
    within = sum(end <= MOST_TOKENS for end in ends)
    number = max(within, SEQUENCES_WITH_PICTURES)
    return _join(shortest[:number] + _chain(shortest, longest))


def _join(sequences: Sequence[_Sequence], pictures: int = 0) -> CanaryTexts:
    token_ids, scored = zip(*sequences, strict=True)
    return CanaryTexts(token_ids, scored, pictures)


def canary_picture() -> Path:
    """The file of the picture that a canary reads, in the cache folder; written if it is not there.
    Arithmetic draws it, the same everywhere: rings, squares and a ramp, one a channel."""
    import numpy as np
    from PIL import Image

    y, x = np.mgrid[:SIZE, :SIZE]
    rings = (x**2 + y**2) // 24 % 256
    squares = (x // 14 + y // 14) % 2 * 200 + 20
    ramp = (2 * x + y) * 255 // (3 * SIZE)
    channels = np.stack([rings, squares, ramp], axis=-1)  # [SIZE, SIZE, 3]
    pixels = channels.astype(np.uint8)

    # Named by its pixels, a picture of another version is another file.
    digest = hashlib.blake2b(pixels.tobytes(), digest_size=6).hexdigest()
    file = cache_folder() / "canary" / f"{digest}.png"
    if not file.exists():
        with atomic(file) as temporary:
            Image.fromarray(pixels).save(temporary, format="png")
    return file


def canary_from(content: Mapping[str, Any]) -> Canary:
    """A canary out of the JSON of a receipt."""

    def rows(values: Any) -> Any:
        return tuple(map(tuple, values))

    return Canary(
        rows(content["token_ids"]),
        rows(content["log_probabilities"]),
        content["pictures"],
        rows(content["rounded"]),
        tuple((name, rows(values)) for name, values in content["rivals"]),
    )


def canary_images(canary: Canary | CanaryTexts) -> list[list[Path]] | None:
    """The images of a canary's sequences, as an engine session takes them."""
    if not canary.pictures:
        return None
    without = len(canary.token_ids) - canary.pictures
    return [[]] * without + [[canary_picture()]] * canary.pictures


def _chain(sequences: Sequence[_Sequence], longest: int) -> list[_Sequence]:
    """The first `CACHED` tokens (at most `longest`) of the sequences on end, repeated if needed;
    scored are those after a block of the cache. Empty if every sequence is that long."""
    length = min(CACHED, longest)
    if len(sequences[0][0]) >= length:
        return []
    repeated = cycle(ids for ids, _ in sequences)
    ids = tuple(islice(chain.from_iterable(repeated), length))
    return [(ids, min(CACHED - BLOCK, length // 2))]
