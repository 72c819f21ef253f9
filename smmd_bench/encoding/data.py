"""Examples -> token ids -> batches; pictures are read when a batch is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..contracts import Example, NumericLoss, Progress
from ..errors import UserError
from .pictures import IGNORE, expand, pad_rows
from .prompts import encode_examples, encode_targets, expanded_lengths, images_of

_CHUNK = 1000


class TokenisedExamples(torch.utils.data.Dataset[dict[str, Tensor]]):  # type: ignore[misc]
    """Examples tokenised once, in flat int32 arrays: 2M short ones take about 300 MB.

    Item k is a row of `expand` over prompt and target, with labels [1, L], unshifted, -100 over the
    prompt and its pictures, and example [1], which is k; int64. Item -1 - k has no target.
    `lengths` [n] count what the model reads. With a `processor` the prompts have one placeholder a
    picture, and nothing holds the pictures; here only their headers are read. Raises UserError at
    the first example longer than `max_length` tokens (nothing is ever cut), with a placeholder in
    its text, or without its picture.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        tokenizer: Any,
        max_length: int,
        progress: Progress | None = None,
        *,
        processor: Any | None = None,
        chat: bool = False,
    ) -> None:
        ids, stored, lengths, prompts = [], [], [], []
        for start in range(0, len(examples), _CHUNK):
            chunk = list(examples[start : start + _CHUNK])
            read = encode_examples(tokenizer, processor, chunk, chat=chat)
            for example, prompt, read_length, target in zip(
                chunk,
                read,
                expanded_lengths(processor, read, images_of(chunk)),
                encode_targets(tokenizer, [e.target for e in chunk], chat=chat),
                strict=True,
            ):
                length = read_length + len(target)
                if length > max_length:
                    raise UserError(
                        f"Training example {example.uid} has {length} tokens, more than "
                        f"{max_length}: raise max_length up to the model's positions, or drop it."
                    )
                ids.append(np.asarray(prompt + target, dtype=np.int32))
                stored.append(len(prompt) + len(target))
                lengths.append(length)
                prompts.append(len(prompt))
            if progress is not None:
                progress("tokenise", min(start + _CHUNK, len(examples)), len(examples))
        self.processor = processor
        self.images = [example.images for example in examples] if processor is not None else []
        self.ids = np.concatenate(ids)
        self.lengths = np.asarray(lengths)
        self.prompts = np.asarray(prompts)
        self.ends = np.cumsum(stored)
        self.starts = self.ends - stored

    def numeric_targets(self, tokenizer: Any, loss: NumericLoss) -> dict[str, int]:
        """Counts of target tokens: all (`tokens`), those with a digit, those of them outside V_num
        (such as "045" at N = 1000), those in V_num (`numeric`), and those that the loss acts on
        (`covered`)."""
        targets = np.concatenate(
            [self.ids[a:b] for a, b in zip(self.starts + self.prompts, self.ends, strict=True)]
        )
        tokens, counts = (torch.from_numpy(x) for x in np.unique(targets, return_counts=True))
        index = loss.vocabulary.index_of(tokens.long())
        numeric = index >= 0
        digits = torch.tensor(
            [any(x.isdigit() for x in tokenizer.decode([token])) for token in tokens.tolist()]
        )
        return {
            "tokens": len(targets),
            "digit_tokens": int(counts[digits].sum()),
            "outside": int(counts[digits & ~numeric].sum()),
            "numeric": int(counts[numeric].sum()),
            "covered": int(counts[numeric][loss.covers(index[numeric])].sum()),
        }

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        if index < 0:
            row = self[-1 - index]
            return {**row, "labels": torch.full_like(row["labels"], IGNORE)}
        ids = torch.from_numpy(self.ids[self.starts[index] : self.ends[index]].astype(np.int64))
        if self.processor is None:
            row = {"input_ids": ids[None], "attention_mask": torch.ones_like(ids)[None]}
        else:
            row = expand(self.processor, ids.tolist(), self.images[index])
        labels = row["input_ids"].clone()
        labels[:, : labels.shape[1] - (len(ids) - int(self.prompts[index]))] = IGNORE
        return {**row, "labels": labels, "example": torch.tensor([index])}


class RightPaddingCollator:
    """Rows of any lengths -> what the model takes, labels [B, T] and example [B]; padded right."""

    def __init__(self, pad_token_id: int) -> None:
        self.pad_token_id = pad_token_id

    def __call__(self, rows: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        """Pad to the longest row."""
        return pad_rows(rows, self.pad_token_id, "right")
