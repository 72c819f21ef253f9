"""Examples -> token ids -> batches; pictures are read when a batch is made.

`expand` replaces the placeholder of a picture by as many tokens as the model reads of it, as the
checkpoint's own processor would, and adds the pixels. vLLM takes the same ids and expands itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ..contracts import Example, NumericLoss, Progress
from ..errors import UserError
from .images import read_image
from .prompts import (
    CROSS_ATTENTION,
    encode_examples,
    encode_targets,
    expanded_lengths,
    images_of,
    pictures_cross,
)

# Cross-entropy of PyTorch and transformers leaves this label out.
IGNORE = -100
_TYPES = "mm_token_type_ids"
# Keys with a column for each token, which are padded to the length of a batch.
_ALONG_TEXT = ("input_ids", "attention_mask", _TYPES, CROSS_ATTENTION, "labels")
_TENSORS = {"return_tensors": "pt"}
# Examples that are tokenised at once, between two reports of progress.
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
        ids = []
        lengths = []
        prompts = []
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
                # A target that is cut has no end, and the model would learn to go on.
                if length > max_length:
                    raise UserError(
                        f"Training example {example.uid} has {length} tokens, more than "
                        f"{max_length}: raise max_length up to the model's positions, or drop it."
                    )
                # Lists of Python integers would take several times the memory.
                ids.append(np.asarray(prompt + target, dtype=np.int32))
                lengths.append(length)
                prompts.append(len(prompt))
            if progress is not None:
                progress("tokenise", min(start + _CHUNK, len(examples)), len(examples))

        self.processor = processor
        self.images = []
        if processor is not None:
            self.images = [example.images for example in examples]

        # One flat array with offsets: an array object each would outweigh short rows.
        stored = [*map(len, ids)]
        self.ids = np.concatenate(ids)
        self.lengths = np.asarray(lengths)
        self.prompts = np.asarray(prompts)
        self.ends = np.cumsum(stored)
        self.starts = self.ends - stored

    def numeric_targets(self, tokenizer: Any, loss: NumericLoss) -> dict[str, int]:
        """Counts of target tokens: all (`tokens`), those with a digit, those of them outside V_num
        (such as "045" at N = 1000), those in V_num (`numeric`), and those that the loss acts on
        (`covered`)."""
        # Prompts have no loss, so that their tokens do not count.
        spans = zip(self.starts + self.prompts, self.ends, strict=True)
        targets = np.concatenate([self.ids[start:end] for start, end in spans])

        # Each kind of token is decoded and looked up once, however often it occurs.
        distinct = np.unique(targets, return_counts=True)
        tokens, counts = map(torch.from_numpy, distinct)  # [D], [D]

        has_digit = []
        for token in tokens.tolist():
            text = tokenizer.decode([token])
            has_digit.append(any(map(str.isdigit, text)))
        digits = torch.tensor(has_digit)  # [D]

        index = loss.vocabulary.index_of(tokens.long())  # [D], -1 outside V_num
        numeric = index >= 0
        numeric_counts = counts[numeric]
        covered = loss.covers(index[numeric])
        return {
            "tokens": len(targets),
            "digit_tokens": int(counts[digits].sum()),
            "outside": int(counts[digits & ~numeric].sum()),
            "numeric": int(numeric_counts.sum()),
            "covered": int(numeric_counts[covered].sum()),
        }

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        if index < 0:
            # A rank without a row of its own takes such a one, since all take each step.
            row = self[-1 - index]
            return {**row, "labels": torch.full_like(row["labels"], IGNORE)}

        start, end = self.starts[index], self.ends[index]
        stored = self.ids[start:end].tolist()
        if self.processor is None:
            row = _text_row(stored)
        else:
            row = expand(self.processor, stored, self.images[index])

        # Pictures make the prompt longer than it is stored, so the target is counted from its end.
        target_length = len(stored) - int(self.prompts[index])
        labels = row["input_ids"].clone()
        labels[:, : labels.shape[1] - target_length] = IGNORE
        return {**row, "labels": labels, "example": torch.tensor([index])}


class RightPaddingCollator:
    """Rows of any lengths -> what the model takes, labels [B, T] and example [B]; padded right."""

    def __init__(self, pad_token_id: int) -> None:
        self.pad_token_id = pad_token_id

    def __call__(self, rows: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        """Pad to the longest row."""
        return pad_rows(rows, self.pad_token_id, "right")


def _text_row(token_ids: Sequence[int]) -> dict[str, Tensor]:
    ids = torch.tensor([[*token_ids]], dtype=torch.int64)  # [1, T]
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def expand(
    processor: Any, token_ids: Sequence[int], images: Sequence[Path]
) -> dict[str, Tensor]:
    """What the model takes for one row of token ids with its pictures, read from their files.

    {input_ids, attention_mask [1, T]} int64, with mm_token_type_ids [1, T] or cross_attention_mask
    [1, T, pictures, tiles] where the model wants them, and the pictures' own keys and shapes, which
    are the processor's. Raises UserError for a broken picture, and ValueError if there are not as
    many placeholders as pictures.
    """
    placeholder = processor.image_token_id
    placeholders = list(token_ids).count(placeholder)
    if placeholders != len(images):
        raise ValueError(
            f"{placeholders} placeholders '{processor.image_token}' for {len(images)} pictures: "
            "make the token ids with encode_image_prompts."
        )

    pictures = [read_image(path) for path in images]

    # Mllama's text has one token a picture, however large that is.
    if pictures_cross(processor):
        return _cross(processor, token_ids, pictures)

    # One picture at a time: how many tokens it takes does not depend on those beside it.
    pieces = []
    for picture in pictures:
        piece = processor(
            text=[processor.image_token],
            images=[[picture]],
            add_special_tokens=False,
            **_TENSORS,
        )
        pieces.append(piece)

    # Each placeholder becomes the tokens of the next picture.
    waiting = iter(pieces)
    expanded: list[int] = []
    for token in token_ids:
        if token == placeholder:
            expanded += next(waiting)["input_ids"][0].tolist()
        else:
            expanded.append(token)

    row = _text_row(expanded)
    if _TYPES in processor.model_input_names:
        row[_TYPES] = (row["input_ids"] == placeholder).long()

    # A row without pictures has none of their keys, as the model takes text alone.
    if pieces:
        for key in pieces[0].keys() - {*_ALONG_TEXT}:
            row[key] = _stack([piece[key] for piece in pieces])
    return row


def pad_rows(
    rows: Sequence[Mapping[str, Tensor]],
    pad_token_id: int,
    side: Literal["left", "right"],
) -> dict[str, Tensor]:
    """A batch of rows such as those of `expand`, padded to the longest on one side.

    Rows may hold `labels` [1, T] too, padded with -100. Pictures follow one another; those of other
    sizes are padded with zeros. Raises ValueError for rows of Mllama of which only some have
    pictures.
    """

    width = max(row["input_ids"].shape[1] for row in rows)
    fills = {"input_ids": pad_token_id, "labels": IGNORE}
    batch = {}

    # Rows with pictures have keys that rows without them lack.
    keys = dict.fromkeys(chain.from_iterable(rows))
    for key in keys:
        parts = [row[key] for row in rows if key in row]
        # The mask has a row for each text, so no text of a batch may lack one.
        if len(parts) < len(rows) and key == CROSS_ATTENTION:
            raise ValueError(
                "Some rows of Mllama have no picture: put them in another batch."
            )
        if key in _ALONG_TEXT:
            fill = fills.get(key, 0)
            parts = [_pad_text(tensor, width, fill, side) for tensor in parts]
        batch[key] = _stack(parts)
    return batch


def _pad_text(part: Tensor, width: int, fill: int, side: str) -> Tensor:
    """[1, T, ...] -> [1, width, ...]"""
    gap = width - part.shape[1]
    # Two numbers a dimension, the last dimension first.
    gaps = [0, 0] * (part.dim() - 2)
    gaps += [gap, 0] if side == "left" else [0, gap]
    return pad(part, gaps, value=fill)


def _cross(
    processor: Any, token_ids: Sequence[int], pictures: list[Any]
) -> dict[str, Tensor]:
    """`expand` where the pictures stand beside the text."""
    # Only this model needs the import, and its module takes long to load.
    from transformers.models.mllama.processing_mllama import (
        convert_sparse_cross_attention_mask_to_dense,
        get_cross_attention_token_mask,
    )

    row = _text_row(token_ids)
    if not pictures:
        return row

    # All pictures of a row at once, since its mask counts tiles across them.
    pixels = dict(processor.image_processor(images=[pictures], **_TENSORS))
    mask = convert_sparse_cross_attention_mask_to_dense(
        [get_cross_attention_token_mask(token_ids, processor.image_token_id)],
        num_tiles=pixels.pop("num_tiles"),
        max_num_tiles=processor.image_processor.max_image_tiles,
        length=len(token_ids),
    )
    return {**row, CROSS_ATTENTION: torch.from_numpy(mask), **pixels}


def _stack(parts: Sequence[Tensor]) -> Tensor:
    """One after another; with zeros beyond the smaller ones where other dimensions differ."""
    shapes = [tensor.shape[1:] for tensor in parts]
    largest = [max(sizes) for sizes in zip(*shapes, strict=True)]
    wide = []
    for tensor in parts:
        # `pad` wants two numbers a dimension, and the last dimension first.
        gaps: list[int] = []
        for most, size in zip(largest, tensor.shape[1:], strict=True):
            gaps = [0, most - size, *gaps]
        wide.append(pad(tensor, gaps))
    return torch.cat(wide)
