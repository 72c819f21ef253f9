"""Prompts with pictures -> token ids -> what a model takes.

A prompt's token ids hold one placeholder a picture. `expand` puts in its place as many tokens as
the model reads of the picture, as the checkpoint's own processor would, and adds the pixels. So the
same ids serve engines that expand themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from ..errors import UserError
from .data import IGNORE, encode_prompts
from .images import image_size, read_image

_TYPES = "mm_token_type_ids"
_CROSS = "cross_attention_mask"
_ALONG_TEXT = ("input_ids", "attention_mask", _TYPES, _CROSS, "labels")
_TENSORS = {"return_tensors": "pt"}
_WRAPPED = {"<|image_pad|>": "<|vision_start|><|image_pad|><|vision_end|>"}


def encode_image_prompts(
    processor: Any,
    texts: Sequence[str],
    images_each: Sequence[int],
    *,
    chat: bool = False,
    uids: Sequence[str] | None = None,
) -> list[list[int]]:
    """Token ids of prompts, each with one placeholder a picture in front of its text.

    As `encode_prompts` otherwise. Raises UserError if `chat` and there is no chat template, and for
    a prompt (named by its uid, if there are `uids`) that has not one placeholder a picture.
    """
    rows = _encoded(processor, texts, images_each, chat=chat)
    for at, (row, pictures) in enumerate(zip(rows, images_each, strict=True)):
        if (found := row.count(processor.image_token_id)) != pictures:
            who = f"Example {uids[at]}" if uids is not None else f"Prompt {at}"
            raise UserError(_miscounted(processor, who, found, pictures))
    return rows


def _encoded(
    processor: Any, texts: Sequence[str], images_each: Sequence[int], *, chat: bool
) -> list[list[int]]:
    tokenizer = processor.tokenizer
    counts = list(zip(texts, images_each, strict=True))
    if chat:
        texts = _chats(processor, counts)
    elif _crosses(processor):  # its pictures stand before the first token
        texts = [processor.image_token * n + tokenizer.bos_token + text for text, n in counts]
    else:
        image = _WRAPPED.get(processor.image_token, processor.image_token)
        return encode_prompts(tokenizer, [image * n + text for text, n in counts])
    rows: list[list[int]] = tokenizer(texts, add_special_tokens=False)["input_ids"]
    for row in rows:
        while row and row[-1] == tokenizer.eos_token_id:
            row.pop()
    return rows


def expand(processor: Any, token_ids: Sequence[int], images: Sequence[Path]) -> dict[str, Tensor]:
    """What the model takes for one row of token ids with its pictures, read from their files.

    {input_ids, attention_mask [1, T]} int64, with mm_token_type_ids [1, T] or cross_attention_mask
    [1, T, pictures, tiles] where the model wants them, and the pictures' own keys and shapes, which
    are the processor's. Raises UserError for a broken picture, and ValueError if there are not as
    many placeholders as pictures.
    """
    _check_placeholders(processor, token_ids, len(images))
    pictures = [read_image(path) for path in images]
    if _crosses(processor):
        return _beside(processor, list(token_ids), pictures)
    pieces = [
        processor(text=[processor.image_token], images=[[p]], add_special_tokens=False, **_TENSORS)
        for p in pictures
    ]
    waiting = iter(pieces)
    parts = [
        next(waiting)["input_ids"][0]
        if token == processor.image_token_id
        else torch.tensor([token])
        for token in token_ids
    ]
    ids = torch.cat(parts)[None]  # [1, T]
    row = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if _TYPES in processor.model_input_names:
        row[_TYPES] = (ids == processor.image_token_id).long()
    for key in pieces[0].keys() - {*_ALONG_TEXT} if pieces else ():
        row[key] = _stacked([piece[key] for piece in pieces])
    return row


def expanded_length(processor: Any, token_ids: Sequence[int], images: Sequence[Path]) -> int:
    """How many tokens `expand` gives, by the headers of the pictures' files alone."""
    _check_placeholders(processor, token_ids, len(images))
    more = sum(picture_tokens(processor, image_size(path)) - 1 for path in images)
    return len(token_ids) + more


def picture_tokens(processor: Any, size: tuple[int, int]) -> int:
    """How many tokens a picture of (width, height) takes in place of its placeholder."""
    if _crosses(processor):
        return 1
    width, height = size
    counts = processor._get_num_multimodal_tokens(image_sizes=[(height, width)])
    return int(counts["num_image_tokens"][0])


def pad_rows(
    rows: Sequence[Mapping[str, Tensor]], pad_token_id: int, side: Literal["left", "right"]
) -> dict[str, Tensor]:
    """A batch of the rows of `expand`, padded to the longest on one side.

    Rows may hold `labels` [1, T] too, padded with -100. Pictures follow one another; those of other
    sizes are padded with zeros. Raises ValueError for rows of Mllama of which only some have
    pictures: its model would let the others read what is padding.
    """
    width = max(row["input_ids"].shape[1] for row in rows)
    fills = {"input_ids": pad_token_id, "labels": IGNORE}
    batch = {}
    for key in {key: None for row in rows for key in row}:
        parts = [row[key] for row in rows if key in row]
        if len(parts) < len(rows) and key == _CROSS:
            raise ValueError("Some rows of Mllama have no picture: put them in another batch.")
        if key in _ALONG_TEXT:
            parts = [_padded(part, width, side, fills.get(key, 0)) for part in parts]
        batch[key] = _stacked(parts)
    return batch


def _miscounted(processor: Any, who: str, found: int, pictures: int) -> str:
    return f"{who} has {found} placeholders '{processor.image_token}' for {pictures} images: " + (
        "its text holds one itself: take it out of the text, or its row out of the data."
        if found > pictures
        else "the chat template leaves images out: leave out chat_template=true, or take "
        "another model."
    )


def _chats(processor: Any, counts: Sequence[tuple[str, int]]) -> list[str]:
    template = processor.chat_template or processor.tokenizer.chat_template
    if not template:
        raise UserError(
            f"The processor {processor.tokenizer.name_or_path} has no chat template: leave out "
            "chat_template=true, or take an instruction-tuned model."
        )
    turns = [
        [{"type": "image"}] * n + [{"type": "text", "text": text.strip()}] for text, n in counts
    ]
    return [
        processor.apply_chat_template(
            [{"role": "user", "content": turn}],
            chat_template=template,
            tokenize=False,
            add_generation_prompt=True,
        )
        for turn in turns
    ]


def _crosses(processor: Any) -> bool:
    """Whether pictures stand beside the text, as Mllama's, and not in it."""
    return _CROSS in processor.model_input_names


def _beside(processor: Any, token_ids: list[int], pictures: list[Any]) -> dict[str, Tensor]:
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
    return {**row, _CROSS: torch.from_numpy(mask), **made}


def _check_placeholders(processor: Any, token_ids: Sequence[int], pictures: int) -> None:
    found = list(token_ids).count(processor.image_token_id)
    if found != pictures:
        raise ValueError(
            f"{found} placeholders '{processor.image_token}' for {pictures} pictures: make the "
            "token ids with encode_image_prompts."
        )


def _padded(part: Tensor, width: int, side: str, fill: int) -> Tensor:
    """[1, T, ...] -> [1, width, ...]."""
    out = part.new_full((1, width, *part.shape[2:]), fill)
    length = part.shape[1]
    out[:, slice(width - length, width) if side == "left" else slice(0, length)] = part
    return out


def _stacked(parts: Sequence[Tensor]) -> Tensor:
    """One after another; with zeros beyond the smaller ones where other dimensions differ."""
    if len({part.shape[1:] for part in parts}) == 1:
        return torch.cat(list(parts))
    shape = torch.tensor([part.shape[1:] for part in parts]).amax(0).tolist()
    out = []
    for part in parts:
        wide = part.new_zeros(len(part), *shape)
        wide[(slice(None), *(slice(0, n) for n in part.shape[1:]))] = part
        out.append(wide)
    return torch.cat(out)
