"""`builtin/tiny-vl` as it is pre-trained: its shape, and how pictures with questions go through it.

All questions about a picture are one row: each attends to the picture and to itself, at the
positions that it has when it is alone. So the picture, most of the work, is seen once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from _pretraining import Recipe as Base
from _tiny_pictures import CHARACTERS, SIZES, Lesson
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import (
    apply_rotary_pos_emb_vision,
)
from transformers.vision_utils import get_vision_position_ids

PATCH, MERGE, HEAD = 14, 2, 64
MEAN = np.array([0.48145466, 0.4578275, 0.40821073], np.float32)
DEVIATION = np.array([0.26862954, 0.26130258, 0.27577711], np.float32)


@dataclass(frozen=True)
class Recipe(Base):
    """Everything that the weights depend on; kept beside them."""

    batch: int = 32
    shares: str = "charts=1"
    reading_weight: float = 1.0
    vision: int = 192
    vision_layers: int = 4
    text: int = 192
    text_layers: int = 4
    intermediate: int = 352


def build(recipe: Recipe, processor: object) -> Qwen2_5_VLForConditionalGeneration:
    tokenizer = processor.tokenizer  # type: ignore[attr-defined]
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in (
        "<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>"
    )}  # fmt: skip
    torch.manual_seed(recipe.seed)
    return Qwen2_5_VLForConditionalGeneration(
        Qwen2_5_VLConfig(
            vision_config={
                "depth": recipe.vision_layers,
                "hidden_size": recipe.vision,
                "intermediate_size": recipe.intermediate,
                "num_heads": recipe.vision // HEAD,
                "out_hidden_size": recipe.text,
                "patch_size": PATCH,
                "spatial_merge_size": MERGE,
                "temporal_patch_size": 2,
                "window_size": 8 * PATCH,
                "fullatt_block_indexes": list(range(recipe.vision_layers)),
            },
            text_config={
                "vocab_size": -(-len(tokenizer) // 64) * 64,
                "hidden_size": recipe.text,
                "intermediate_size": recipe.intermediate,
                "num_hidden_layers": recipe.text_layers,
                "num_attention_heads": recipe.text // HEAD,
                "num_key_value_heads": recipe.text // HEAD,
                "max_position_embeddings": tokenizer.model_max_length,
                "rope_parameters": {
                    "rope_type": "default", "rope_theta": 10_000.0,
                    "mrope_section": [HEAD // 8, HEAD * 3 // 16, HEAD * 3 // 16],
                },
                "bos_token_id": None,
                "eos_token_id": tokenizer.eos_token_id,
                "pad_token_id": tokenizer.pad_token_id,
                "tie_word_embeddings": True,
            },
            image_token_id=ids["<|image_pad|>"],
            video_token_id=ids["<|video_pad|>"],
            vision_start_token_id=ids["<|vision_start|>"],
            vision_end_token_id=ids["<|vision_end|>"],
            tie_word_embeddings=True,
        )
    )  # fmt: skip


def patches(pictures: np.ndarray) -> Tensor:
    """As the processor makes them: [n, patches, 3 * 2 * PATCH * PATCH] float32."""
    pixels = (pictures.astype(np.float32) / 255 - MEAN) / DEVIATION  # [n, H, W, 3]
    n, height, width, _ = pixels.shape
    across, down = width // PATCH // MERGE, height // PATCH // MERGE
    cut = pixels.reshape(n, down, MERGE, PATCH, across, MERGE, PATCH, 3)
    # [n, down, across, MERGE, MERGE, 3, PATCH, PATCH]
    cut = cut.transpose(0, 1, 4, 2, 5, 7, 3, 6)
    cut = np.repeat(cut[:, :, :, :, :, :, None], 2, axis=6)
    return torch.from_numpy(cut.reshape(n, down * across * MERGE * MERGE, -1))


def see(visual: nn.Module, pixels: Tensor, grid: Tensor) -> Tensor:
    """`visual` of pictures of one size, all of a batch at once: [n, tokens, width].

    pixels: [n, patches, values]; grid: [1, 3], frames, rows and columns of patches of one picture.
    """
    weight = visual.patch_embed.proj.weight
    hidden = F.linear(pixels, weight.view(len(weight), -1))
    n, length, width = hidden.shape
    cos, sin = visual.rotary_pos_emb(hidden, get_vision_position_ids(grid, MERGE))
    for block in visual.blocks:
        hidden = _block(block, hidden, cos, sin)
    return visual.merger(hidden.reshape(n * length, width)).view(
        n, length // MERGE**2, -1
    )


@torch.compile(dynamic=True)
def _block(block: nn.Module, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    n, length, width = hidden.shape
    heads = block.attn.qkv(block.norm1(hidden)).view(n, length, 3, -1, HEAD)
    query, key, value = heads.unbind(2)
    query, key = apply_rotary_pos_emb_vision(query, key, cos, sin)
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    weights = (query @ key.mT * HEAD**-0.5).softmax(-1).to(value.dtype)
    # less time on a CPU than the fused kernel
    mixed = (weights @ value).transpose(1, 2)
    hidden = hidden + block.attn.proj(mixed.reshape(n, length, width))
    return hidden + block.mlp(block.norm2(hidden))


class Reader(nn.Module):
    """The model, and how pictures with their questions go through it."""

    def __init__(self, recipe: Recipe, processor: object) -> None:
        super().__init__()
        self.model = build(recipe, processor)
        self.reading = nn.Linear(recipe.text, MERGE**2 * len(CHARACTERS))
        nn.init.constant_(self.reading.bias, -5.0)  # most patches hold none
        self.tokenizer = processor.tokenizer  # type: ignore[attr-defined]
        self.image_id = self.model.config.image_token_id

    def rows(self, source: str, batch: list[Lesson]) -> dict[str, Tensor]:
        """ids, labels [n, T]; positions [3, n, T]; mask [n, 1, T, T]; question [n, T], -1: none."""
        across, down = (side // PATCH // MERGE for side in SIZES[source])
        seen = f"<|vision_start|>{'<|image_pad|>' * (across * down)}<|vision_end|>"
        start = self.tokenizer(seen)["input_ids"]
        grid = torch.tensor([[1, down * MERGE, across * MERGE]])
        ids = torch.tensor([start])
        before, _ = self.model.model.get_rope_index(
            ids, mm_token_type_ids=(ids == self.image_id).int(), image_grid_thw=grid
        )
        first = int(before.max()) + 1
        made = []
        for lesson in batch:
            tokens, labels, question = [*start], [-100] * len(start), [-1] * len(start)
            after: list[int] = []
            for number, (prompt, target) in enumerate(lesson.pairs):
                asked = self.tokenizer(prompt)["input_ids"]
                told = [
                    *self.tokenizer(target)["input_ids"],
                    self.tokenizer.eos_token_id,
                ]
                tokens += asked + told[:-1]
                labels += [-100] * (len(asked) - 1) + told
                question += [number] * (len(asked) + len(told) - 1)
                after += range(first, first + len(asked) + len(told) - 1)
            made.append((tokens, labels, question, after))
        width = max(len(tokens) for tokens, *_ in made)
        fill = partial(torch.full, (len(batch), width))
        ids, labels = fill(self.tokenizer.pad_token_id), fill(-100)
        question, positions = (
            fill(-2),
            torch.zeros(3, len(batch), width, dtype=torch.long),
        )
        for i, (tokens, labelled, asked, after) in enumerate(made):
            ids[i, : len(tokens)] = torch.tensor(tokens)
            labels[i, : len(tokens)] = torch.tensor(labelled)
            question[i, : len(tokens)] = torch.tensor(asked)
            positions[:, i, : len(start)] = before[:, 0]
            positions[:, i, len(start) : len(tokens)] = torch.tensor(after)
        same = (question[:, :, None] == question[:, None, :]) | (
            question[:, None, :] == -1
        )
        seen_by = (same & torch.ones(width, width, dtype=torch.bool).tril())[:, None]
        mask = torch.zeros(seen_by.shape).masked_fill(
            ~seen_by, torch.finfo(torch.float32).min
        )
        return {"ids": ids, "labels": labels, "positions": positions, "mask": mask,
                "question": question, "grid": grid}  # fmt: skip

    def letters(self, source: str, batch: list[Lesson]) -> Tensor:
        """Which characters a token's patches hold: [n, tokens, MERGE**2 * characters], 0 or 1."""
        across, down = (side // PATCH for side in SIZES[source])
        found = torch.zeros(len(batch), down, across, len(CHARACTERS))
        for i, lesson in enumerate(batch):
            column, row = (lesson.letters[:, :2] // PATCH).T
            inside = (column >= 0) & (column < across) & (row >= 0) & (row < down)
            where = np.stack([row, column, lesson.letters[:, 2]])[:, inside].astype(int)
            found[i, *where] = 1.0
        parts = found.view(len(batch), down // MERGE, MERGE, across // MERGE, MERGE, -1)
        return parts.transpose(2, 3).flatten(3).flatten(1, 2)

    def forward(self, source: str, batch: list[Lesson]) -> tuple[Tensor, ...]:
        """Logits [M, V] and labels [M] of the supervised tokens, their row and question [M], and
        the tokens of the pictures [n, tokens, width]."""
        device = self.model.device
        rows = {name: t.to(device) for name, t in self.rows(source, batch).items()}
        inner = self.model.model
        pixels = patches(np.stack([lesson.picture for lesson in batch])).to(device)
        embedded = inner.language_model.embed_tokens(rows["ids"])
        where = (rows["ids"] == self.image_id)[..., None].expand_as(embedded)
        tokens = see(inner.visual, pixels, rows["grid"])
        hidden = inner.language_model(
            inputs_embeds=embedded.masked_scatter(where, tokens.to(embedded.dtype)),
            position_ids=rows["positions"],
            attention_mask={"full_attention": rows["mask"]},
            use_cache=False,
        ).last_hidden_state
        told = rows["labels"] != -100
        logits = self.model.lm_head(hidden[told]).float()
        return (
            logits,
            rows["labels"][told],
            told.nonzero()[:, 0],
            rows["question"][told],
            tokens,
        )

    @torch.no_grad()
    def exact(self, source: str, held_out: list[Lesson], asked: int) -> float:
        """Share of the first `asked` questions of each picture whose every token is the argmax."""
        wrong, size = 0, 25
        for at in range(0, len(held_out), size):
            logits, labels, row, question, _ = self(source, held_out[at : at + size])
            missed = (logits.argmax(-1) != labels) & (question < asked)
            wrong += len(
                {*zip(row[missed].tolist(), question[missed].tolist(), strict=True)}
            )
        return 1 - wrong / (len(held_out) * asked)
