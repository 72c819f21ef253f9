"""Pre-train `builtin/tiny-vl` from scratch on synthetic clocks; resumable, seeded, logged.

    nice -n 19 python scripts/pretrain_tiny_vl.py RUNDIR --steps 120
    python scripts/pretrain_tiny_vl.py RUNDIR --export smmd_bench/models/builtin/tiny-vl

The first command trains up to a step (and goes on where a killed one stopped), appends to
RUNDIR/log.jsonl and saves RUNDIR/state.pt now and then. The second writes the model as safetensors
beside the processor that scripts/build_tiny_vl.py makes. Batch k depends on the seed and k alone.

Its faces are drawn from seeds of its own, so the 100 faces of the task stay unseen; the times are
the task's 144. Beside the next-token loss a linear map reads hour and minute from the picture's
tokens, so that the vision tower learns sooner; it is dropped at the export. Muon for the matrices
inside the blocks, AdamW for the rest, a constant learning rate after a short warm-up.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from _pretraining import (
    export,
    last_recipe,
    log,
    make_optimizers,
    note_phase,
    parser,
    recipe_of,
    resume,
    save,
    set_rates,
    update,
)
from smmd_bench.tasks._clock_drawing import FaceStyle, draw_clock
from smmd_bench.tasks.clock_time import PROMPT
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoProcessor, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

BUILTIN = Path(__file__).parent.parent / "smmd_bench" / "models" / "builtin" / "tiny-vl"
PIXELS, PATCH, MERGE = 112, 14, 2
GRID = PIXELS // PATCH
TOKENS = (GRID // MERGE) ** 2
MEAN = np.array([0.48145466, 0.4578275, 0.40821073], np.float32)
DEVIATION = np.array([0.26862954, 0.26130258, 0.27577711], np.float32)
FACES_A_BLOCK, BATCHES_A_BLOCK = 64, 16


@dataclass(frozen=True)
class Recipe:
    """Everything that the weights depend on; kept beside them."""

    seed: int = 0
    vision: int = 128
    vision_layers: int = 4
    text: int = 128
    text_layers: int = 4
    intermediate: int = 384
    batch: int = 128
    muon_lr: float = 0.02
    adamw_lr: float = 1.5e-3
    weight_decay: float = 0.01
    warmup_steps: int = 100
    reading_weight: float = 1.0
    bf16: bool = False


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
                "num_heads": recipe.vision // 32,
                "out_hidden_size": recipe.text,
                "patch_size": PATCH,
                "spatial_merge_size": MERGE,
                "temporal_patch_size": 2,
                "window_size": PIXELS,
                "fullatt_block_indexes": list(range(recipe.vision_layers)),
            },
            text_config={
                "vocab_size": -(-len(tokenizer) // 64) * 64,
                "hidden_size": recipe.text,
                "intermediate_size": recipe.intermediate,
                "num_hidden_layers": recipe.text_layers,
                "num_attention_heads": recipe.text // 32,
                "num_key_value_heads": recipe.text // 32,
                "max_position_embeddings": tokenizer.model_max_length,
                "rope_parameters": {
                    "rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [4, 6, 6],
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


def clocks(key: str, count: int, faces: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures [count, PIXELS, PIXELS, 3] uint8 and their (hour, minute) [count, 2]."""
    rng = random.Random(key)
    styles = [FaceStyle(f"pretraining {key} {i}") for i in range(faces)]
    pictures = np.empty((count, PIXELS, PIXELS, 3), np.uint8)
    times = np.empty((count, 2), np.int64)
    for i in range(count):
        hour, minute = rng.randint(1, 12), rng.randrange(0, 60, 5)
        picture = draw_clock(styles[i * faces // count], hour, minute)
        pictures[i] = np.asarray(picture.resize((PIXELS, PIXELS), 3))
        times[i] = hour, minute
    order = np.array(rng.sample(range(count), count))
    return pictures[order], times[order]


def blocks(recipe: Recipe, step: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches from a step on; the next block is drawn in another process meanwhile."""
    count = recipe.batch * BATCHES_A_BLOCK
    draw = partial(clocks, count=count, faces=FACES_A_BLOCK)
    with ProcessPoolExecutor(1) as pool:
        number, offset = divmod(step, BATCHES_A_BLOCK)
        waiting = pool.submit(draw, f"{recipe.seed} {number}")
        while True:
            pictures, times = waiting.result()
            number += 1
            waiting = pool.submit(draw, f"{recipe.seed} {number}")
            for at in range(offset, BATCHES_A_BLOCK):
                part = slice(at * recipe.batch, (at + 1) * recipe.batch)
                yield pictures[part], times[part]
            offset = 0


def patches(pictures: np.ndarray) -> Tensor:
    """As the processor makes them: [n * GRID * GRID, 3 * 2 * PATCH * PATCH] float32."""
    pixels = (pictures.astype(np.float32) / 255 - MEAN) / DEVIATION  # [n, H, W, 3]
    half = GRID // MERGE
    cut = pixels.reshape(len(pixels), half, MERGE, PATCH, half, MERGE, PATCH, 3)
    cut = cut.transpose(0, 1, 4, 2, 5, 7, 3, 6)  # [n, half, half, MERGE, MERGE, 3, PATCH, PATCH]
    cut = np.repeat(cut[:, :, :, :, :, :, None], 2, axis=6)
    return torch.from_numpy(cut.reshape(len(pixels) * GRID * GRID, -1))


class Reader(nn.Module):
    """The model with positions worked out once, and the linear map beside it."""

    def __init__(self, recipe: Recipe, processor: object) -> None:
        super().__init__()
        self.model = build(recipe, processor)
        self.reading = nn.Linear(TOKENS * recipe.text, 24)
        tokenizer = processor.tokenizer  # type: ignore[attr-defined]
        pad = "<|image_pad|>" * TOKENS
        text = f"<|vision_start|>{pad}<|vision_end|>{PROMPT}"
        self.prompt = tokenizer(text)["input_ids"]
        self.eos, self.image_id = tokenizer.eos_token_id, self.model.config.image_token_id
        width = len(self.prompt) + 8
        ids = torch.tensor([self.prompt + [self.eos] * 8])
        positions, _ = self.model.model.get_rope_index(
            ids,
            mm_token_type_ids=(ids == self.image_id).int(),
            image_grid_thw=torch.tensor([[1, GRID, GRID]]),
        )
        self.positions = positions[:, :, :width]  # [3, 1, T]
        self.targets = {
            (h, m): [*tokenizer(f" {h}:{m:02}")["input_ids"], self.eos]
            for h in range(1, 13)
            for m in range(0, 60, 5)
        }

    def forward(self, pictures: np.ndarray, times: np.ndarray) -> tuple[Tensor, ...]:
        """(next-token loss, loss of the reading, exact [n] bool)."""
        n = len(pictures)
        rows = [self.targets[h, m] for h, m in times.tolist()]
        width = len(self.prompt) + max(map(len, rows)) - 1
        ids = torch.full((n, width + 1), self.eos)
        labels = torch.full((n, width), -100)
        ids[:, : len(self.prompt)] = torch.tensor(self.prompt)
        for i, row in enumerate(rows):
            end = len(self.prompt) + len(row)
            ids[i, len(self.prompt) : end] = torch.tensor(row)
            labels[i, len(self.prompt) - 1 : end - 1] = torch.tensor(row)
        ids = ids[:, :width]
        inner = self.model.model
        grid = torch.tensor([[1, GRID, GRID]]).repeat(n, 1)
        seen = inner.visual(patches(pictures), grid_thw=grid).pooler_output  # [n * TOKENS, H]
        embedded = inner.language_model.embed_tokens(ids)
        mask = (ids == self.image_id)[..., None].expand_as(embedded)
        embedded = embedded.masked_scatter(mask, seen.to(embedded.dtype))
        hidden = inner.language_model(
            inputs_embeds=embedded,
            position_ids=self.positions[:, :, :width].expand(3, n, width),
            use_cache=False,
        ).last_hidden_state
        supervised = labels != -100
        logits = self.model.lm_head(hidden[supervised]).float()
        loss = F.cross_entropy(logits, labels[supervised])
        found = self.reading(seen.view(n, -1).float())
        wanted = torch.from_numpy(times)
        reading = F.cross_entropy(found[:, :12], wanted[:, 0] - 1)
        reading = reading + F.cross_entropy(found[:, 12:], wanted[:, 1] // 5)
        hits = torch.ones_like(supervised)
        hits[supervised] = logits.argmax(-1) == labels[supervised]
        return loss, reading, hits.all(1)


@torch.no_grad()
def exact(reader: Reader, pictures: np.ndarray, times: np.ndarray) -> float:
    """Share of answers whose every token is the argmax: what greedy decoding would get right."""
    parts = [
        reader(pictures[i : i + 200], times[i : i + 200])[2] for i in range(0, len(times), 200)
    ]
    return float(torch.cat(parts).float().mean())


def train(folder: Path, recipe: Recipe, steps: int, log_every: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    reader = Reader(recipe, AutoProcessor.from_pretrained(BUILTIN))
    model = reader.model
    inside = [*model.model.visual.blocks.parameters()]
    inside += [*model.model.language_model.layers.parameters()]
    matrices = [p for p in inside if p.ndim == 2]
    rest = [p for p in reader.parameters() if all(p is not m for m in matrices)]
    optimizers = make_optimizers(recipe, matrices, rest)
    step, seconds = resume(folder, reader, optimizers)
    note_phase(folder, step, recipe)
    held_out = clocks("held out", 1000, 100)
    start = time.monotonic()
    losses: list[tuple[float, float]] = []
    batches = blocks(recipe, step)
    while step < steps:
        pictures, times = next(batches)
        set_rates(optimizers, recipe, min(1.0, (step + 1) / recipe.warmup_steps))
        with torch.autocast("cpu", torch.bfloat16, enabled=recipe.bf16):
            loss, reading, _ = reader(pictures, times)
        (loss + recipe.reading_weight * reading).backward()
        update(optimizers, reader)
        losses.append((float(loss.detach()), float(reading.detach())))
        step += 1
        if step % log_every == 0 or step == steps:
            now = seconds + time.monotonic() - start
            text, read = np.mean(losses, axis=0)
            line = {
                "step": step,
                "pictures": step * recipe.batch,
                "minutes": round(now / 60, 2),
                "loss": round(float(text), 4),
                "reading": round(float(read), 4),
                "exact": round(exact(reader, *held_out), 4),
            }
            losses = []
            log(folder, line)
            save(folder, reader, optimizers, step, now)


def main() -> None:
    flags = parser(__doc__, Recipe)
    flags.add_argument("--steps", type=int, default=120)
    flags.add_argument("--log-every", type=int, default=20, help="steps; the state is saved too")
    arguments = flags.parse_args()
    torch.set_num_threads(arguments.threads)
    if not arguments.export:
        recipe = recipe_of(arguments, Recipe)
        train(arguments.folder, recipe, arguments.steps, arguments.log_every)
        return
    processor = AutoProcessor.from_pretrained(BUILTIN)
    reader = Reader(last_recipe(arguments.folder, Recipe), processor)
    export(arguments.folder, arguments.export, reader, reader.model, processor.tokenizer)


if __name__ == "__main__":
    main()
