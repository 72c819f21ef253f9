"""Token ids with placeholders, and their pictures -> what a model takes.

`expand` replaces the placeholder of a picture by as many tokens as the model reads of it, as the
checkpoint's own processor would, and adds the pixels. vLLM takes the same ids and expands itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from .images import read_image
from .prompts import CROSS_ATTENTION, pictures_cross

IGNORE = -100
_TYPES = "mm_token_type_ids"
_ALONG_TEXT = ("input_ids", "attention_mask", _TYPES, CROSS_ATTENTION, "labels")
_TENSORS = {"return_tensors": "pt"}


def expand(processor: Any, token_ids: Sequence[int], images: Sequence[Path]) -> dict[str, Tensor]:
    """What the model takes for one row of token ids with its pictures, read from their files.

    {input_ids, attention_mask [1, T]} int64, with mm_token_type_ids [1, T] or cross_attention_mask
    [1, T, pictures, tiles] where the model wants them, and the pictures' own keys and shapes, which
    are the processor's. Raises UserError for a broken picture, and ValueError if there are not as
    many placeholders as pictures.
    """
    placeholder = processor.image_token_id
    if (found := list(token_ids).count(placeholder)) != len(images):
        raise ValueError(
            f"{found} placeholders '{processor.image_token}' for {len(images)} pictures: make the "
            "token ids with encode_image_prompts."
        )
    pictures = [read_image(path) for path in images]
    if pictures_cross(processor):
        return _cross(processor, list(token_ids), pictures)
    pieces = [
        processor(text=[processor.image_token], images=[[p]], add_special_tokens=False, **_TENSORS)
        for p in pictures
    ]
    waiting = iter(pieces)
    parts = [
        next(waiting)["input_ids"][0] if token == placeholder else torch.tensor([token])
        for token in token_ids
    ]
    ids = torch.cat(parts)[None]  # [1, T]
    row = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if _TYPES in processor.model_input_names:
        row[_TYPES] = (ids == placeholder).long()
    for key in pieces[0].keys() - {*_ALONG_TEXT} if pieces else ():
        row[key] = _stack([piece[key] for piece in pieces])
    return row


def pad_rows(
    rows: Sequence[Mapping[str, Tensor]], pad_token_id: int, side: Literal["left", "right"]
) -> dict[str, Tensor]:
    """A batch of rows such as those of `expand`, padded to the longest on one side.

    Rows may hold `labels` [1, T] too, padded with -100. Pictures follow one another; those of other
    sizes are padded with zeros. Raises ValueError for rows of Mllama of which only some have
    pictures.
    """
    width = max(row["input_ids"].shape[1] for row in rows)
    fills = {"input_ids": pad_token_id, "labels": IGNORE}
    batch = {}
    for key in {key: None for row in rows for key in row}:
        parts = [row[key] for row in rows if key in row]
        if len(parts) < len(rows) and key == CROSS_ATTENTION:
            raise ValueError("Some rows of Mllama have no picture: put them in another batch.")
        if key in _ALONG_TEXT:  # [1, T, ...] -> [1, width, ...]
            fill, rest = fills.get(key, 0), [0, 0] * (parts[0].dim() - 2)
            gaps = [width - part.shape[1] for part in parts]
            ends = [[*rest, gap, 0] if side == "left" else [*rest, 0, gap] for gap in gaps]
            parts = [pad(part, end, value=fill) for part, end in zip(parts, ends, strict=True)]
        batch[key] = _stack(parts)
    return batch


def _cross(processor: Any, token_ids: list[int], pictures: list[Any]) -> dict[str, Tensor]:
    """`expand` where the pictures stand beside the text."""
    from transformers.models.mllama.processing_mllama import (
        convert_sparse_cross_attention_mask_to_dense,
        get_cross_attention_token_mask,
    )

    ids = torch.tensor([token_ids])
    row = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if not pictures:
        return row
    made = dict(processor.image_processor(images=[pictures], **_TENSORS))
    mask = convert_sparse_cross_attention_mask_to_dense(
        [get_cross_attention_token_mask(token_ids, processor.image_token_id)],
        num_tiles=made.pop("num_tiles"),
        max_num_tiles=processor.image_processor.max_image_tiles,
        length=len(token_ids),
    )
    return {**row, CROSS_ATTENTION: torch.from_numpy(mask), **made}


def _stack(parts: Sequence[Tensor]) -> Tensor:
    """One after another; with zeros beyond the smaller ones where other dimensions differ."""
    shape = [max(sizes) for sizes in zip(*(part.shape[1:] for part in parts), strict=True)]
    wide = []
    for part in parts:
        gaps = [most - size for most, size in zip(shape, part.shape[1:], strict=True)]
        wide.append(pad(part, [end for gap in reversed(gaps) for end in (0, gap)]))
    return torch.cat(wide)
