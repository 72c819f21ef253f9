"""Variants of a tiny checkpoint that reads images: an adapter, other weights, another tower."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smmd_bench.contracts import Checkpoint, CheckpointKind
from smmd_bench.models.loading import add_adapter, load_model
from smmd_bench.models.processor import load_processor
from smmd_bench.models.recipe import Recipe
from smmd_bench.training.canary import make_canary

from ..tiny_vlms import build_vlm, draw_picture

PICTURES = ((84, 84), (112, 70), (60, 100), (84, 84), (112, 112), (84, 84))
QUESTIONS = ("What is it?", "How many are there in all?", "12+", "Which? 1, 2 or 3: ")


@dataclass(frozen=True)
class TinyVlm:
    """A base with variants: lora, full (all weights differ), tower (the vision tower's do)."""

    base: Path
    processor: Any
    checkpoints: Mapping[str, Checkpoint]
    images: list[list[Path]]
    prompts: list[list[int]]
    blank: Path
    numbers: list[int]


def build_variants(architecture: str, root: Path) -> TinyVlm:
    """All of an architecture's, in about three seconds."""
    import torch

    from smmd_bench.encoding.prompts import encode_image_prompts

    base = build_vlm(architecture, root / "base")
    processor = load_processor(base)
    checkpoints: dict[str, Checkpoint] = {}

    def save(name: str, kind: CheckpointKind, model: Any) -> None:
        if kind != "base":
            model.save_pretrained(root / name)
        canary = make_canary(model, processor.tokenizer, processor)
        checkpoints[name] = Checkpoint(name, kind, root / name, canary)

    torch.manual_seed(1)
    save("base", "base", load_model(base, "float32"))
    lora = add_adapter(load_model(base, "float32"), Recipe(lora_rank=8))
    _shift(lora, lambda name: "lora_B" in name)
    save("lora", "lora", lora)
    full = load_model(base, "float32")
    _shift(full, lambda name: True)
    save("full", "full", full)
    tower = load_model(base, "float32")
    _shift(tower, lambda name: "visual" in name or "vision" in name)
    save("tower", "full", tower)
    pictures = [draw_picture(root / f"{n}.png", n, size) for n, size in enumerate(PICTURES)]
    texts = [QUESTIONS[n % len(QUESTIONS)] for n in range(len(pictures))]
    return TinyVlm(
        base,
        processor,
        checkpoints,
        [[picture] for picture in pictures],
        encode_image_prompts(processor, texts, [1] * len(texts)),
        _blank(root / "blank.png"),
        processor.tokenizer.convert_tokens_to_ids(list("0123456789")),
    )


def _shift(model: Any, chosen: Callable[[str], bool]) -> None:
    """Add to the chosen matrices noise of a third of their own spread, or of 0.05."""
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 and chosen(name):
                spread = max(0.3 * float(parameter.std()), 0.05)
                parameter += spread * torch.randn_like(parameter)


def _blank(path: Path) -> Path:
    from PIL import Image

    Image.new("RGB", PICTURES[0], "white").save(path)
    return path
