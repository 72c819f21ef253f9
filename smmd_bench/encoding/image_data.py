"""Examples with pictures -> token ids -> batches; the pictures are read when a batch is made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from ..contracts import Example, Progress
from .data import IGNORE, TokenisedExamples
from .images import image_size
from .pictures import expand, pad_rows, picture_tokens
from .prompts import encode_examples


class ImageExamples(TokenisedExamples):
    """Examples tokenised once, with one placeholder a picture; nothing holds the pictures.

    Item k is a row of `expand` over prompt and target, with labels [1, L], unshifted, -100 over the
    prompt and its pictures, and example [], which is k. `lengths` [n] count what the model reads.
    Of the pictures only the headers are read here: preflight has read them all. Raises UserError at
    the first example that is too long, has a placeholder in its text, or has no picture there.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        processor: Any,
        max_length: int,
        progress: Progress | None = None,
        *,
        chat: bool = False,
    ) -> None:
        self.processor = processor
        self.images = [example.images for example in examples]
        self._size = cache(image_size)
        self._tokens = cache(lambda size: picture_tokens(processor, size))
        super().__init__(examples, processor.tokenizer, max_length, progress, chat=chat)
        del self._size, self._tokens  # workers of a data loader get a copy of the rest

    def _encode(
        self, tokenizer: Any, examples: Sequence[Example], *, chat: bool
    ) -> list[list[int]]:
        return encode_examples(tokenizer, self.processor, examples, chat=chat)

    def _read_length(self, example: Example, prompt: list[int]) -> int:
        return len(prompt) + sum(self._tokens(self._size(path)) - 1 for path in example.images)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        ids = self._ids(index)
        row = expand(self.processor, ids.tolist(), self.images[index])
        labels = row["input_ids"].clone()
        labels[:, : labels.shape[1] - (len(ids) - int(self.prompts[index]))] = IGNORE
        return {**row, "labels": labels, "example": torch.tensor(index)}


class ImageCollator:
    """Rows of any lengths -> what the model takes, labels [B, T] and example [B]; padded right."""

    def __init__(self, pad_token_id: int) -> None:
        self.pad_token_id = pad_token_id

    def __call__(self, rows: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        """Pad to the longest row."""
        example = torch.stack([row["example"] for row in rows])
        rows = [{k: v for k, v in row.items() if k != "example"} for row in rows]
        return {**pad_rows(rows, self.pad_token_id, "right"), "example": example}
