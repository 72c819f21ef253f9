"""Prompts of examples that may have images: token ids, and lengths where images count in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..contracts import Example, Images


def encode_examples(
    tokenizer: Any, processor: Any | None, examples: Sequence[Example], *, chat: bool = False
) -> list[list[int]]:
    """Token ids of the examples' prompts, as in training, with one placeholder an image.

    `processor` is the checkpoint's, or None where no example has an image. Raises UserError for an
    example whose text holds a placeholder itself.
    """
    from .data import encode_prompts
    from .pictures import encode_image_prompts

    texts = [example.prompt for example in examples]
    if processor is None:
        return encode_prompts(tokenizer, texts, chat=chat)
    counts = [len(example.images) for example in examples]
    uids = [example.uid for example in examples]
    return encode_image_prompts(processor, texts, counts, chat=chat, uids=uids)


def images_of(examples: Sequence[Example]) -> Images | None:
    """The images of each example; None where none has any."""
    images = [example.images for example in examples]
    return images if any(images) else None


def expanded_lengths(
    processor: Any, rows: Sequence[Sequence[int]], images: Images | None
) -> list[int]:
    """The tokens of each row once its images are in it; without images, those that it has.

    Images of one size take the same number of tokens: one of each size is processed.
    """
    from .images import image_size
    from .pictures import expanded_length

    if images is None:
        return [len(row) for row in rows]
    more: dict[tuple[int, int], int] = {}
    lengths = []
    for row, files in zip(rows, images, strict=True):
        length = len(row)
        for file in files:
            size = image_size(file)
            if size not in more:
                more[size] = expanded_length(processor, [processor.image_token_id], [file]) - 1
            length += more[size]
        lengths.append(length)
    return lengths


def text_after_images(ids: Sequence[int], placeholder: int | None) -> int:
    """How many tokens follow the last image, or, where there is none, the first token."""
    places = [place for place, token in enumerate(ids) if token == placeholder]
    return len(ids) - 1 - max(places, default=0)
