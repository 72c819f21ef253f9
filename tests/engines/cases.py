"""A base of each kind with its variants, and a session of each engine that can run it."""

from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from smmd_bench.plugins.engines.transformers import TransformersEngine
from smmd_bench.plugins.engines.vllm import VllmEngine

from smmd_bench.contracts import Checkpoint, EngineSession, EngineSettings
from smmd_bench.encoding.data import expand
from smmd_bench.encoding.prompts import encode_image_prompts
from smmd_bench.models.loading import add_adapter, load_model
from smmd_bench.models.recipe import Recipe
from smmd_bench.models.tokenizers import load_processor
from smmd_bench.training.canary import make_canary
from smmd_bench.training.canary_texts import general_texts

from ..tiny_vlms import build_vlm, draw_picture

SETTINGS = EngineSettings(max_model_length=256, adapters=True, memory_gb=0.125)
SIZES = ((84, 84), (112, 70), (60, 100), (84, 84), (112, 112), (84, 84))
QUESTIONS = ("What is it?", "How many are there in all?", "12+", "Which? 1, 2 or 3: ")


@dataclass(frozen=True)
class Case:
    """Checkpoints by name, prompts, and, for a base that reads them, the pictures of each."""

    name: str
    base: Path
    checkpoints: Mapping[str, Checkpoint]
    tokenizer: Any
    prompts: list[list[int]]
    numbers: list[int]
    there_and_back: tuple[str, ...]
    sessions: dict[str, EngineSession]
    images: list[list[Path]] | None = None
    processor: Any = None

    def decode(self, session, checkpoint, count, **more):
        """Completions of the prompts, of at most `count` tokens each."""
        return session.generate(
            self.prompts, checkpoint, max_new_tokens=count, images=self.images, **more
        )

    def probe(self, session, checkpoint):
        """Probabilities of the numbers after each prompt."""
        return session.next_token_probabilities(
            self.prompts, self.numbers, checkpoint, images=self.images
        )

    def first_logits(self, model):
        """After each prompt: [n, V]."""
        return torch.stack(
            [self.logits(model, row, []) for row in range(len(self.prompts))]
        )

    def logits(self, model, row, more):
        """After a prompt and some tokens, by a plain forward pass of this row alone: [V]."""
        ids = [*self.prompts[row], *more]
        if self.images is None:
            inputs = {"input_ids": torch.tensor([ids])}
        else:
            inputs = expand(self.processor, ids, self.images[row])
        with torch.no_grad():
            return model(**inputs).logits[0, -1]


@contextmanager
def open_sessions(base):
    """Of each engine that can run the base, by its name."""
    with ExitStack() as stack:
        engines = [TransformersEngine(), VllmEngine()]
        yield {
            engine.name: stack.enter_context(engine.open(base, SETTINGS))
            for engine in engines
            if not hasattr(engine, "refuses") or engine.refuses(base) is None
        }


def text_case(name, tiny, sessions):
    texts = [f"{a}+{b}=" for a in (*range(10), 12, 345) for b in range(0, 10, 2)]
    # more than a block of the prefix cache
    texts += ["1+2=3 " * 25 + text for text in texts[:3]]
    numbers = [str(n) for n in range(10 if name == "digit" else 1000)]
    return Case(
        name,
        tiny.base,
        tiny.checkpoints,
        tiny.tokenizer,
        tiny.tokenizer(texts)["input_ids"],
        tiny.tokenizer.convert_tokens_to_ids(numbers),
        (
            "base",
            "lora1",
            "full1",
            "lora2",
            "base",
            "full2",
            "full1",
            "lora1",
            "lora2",
            "base",
        ),
        sessions,
    )


def build_variants(architecture, root):
    """A base, an adapter, a checkpoint of which all weights differ, and one of which only the
    vision tower's do, in about three seconds."""
    base = build_vlm(architecture, root / "base")
    processor = load_processor(base)
    checkpoints = {}
    torch.manual_seed(1)

    for name, kind, chosen in (
        ("base", "base", lambda name: False),
        ("lora", "lora", lambda name: "lora_B" in name),
        ("full", "full", lambda name: True),
        ("tower", "full", lambda name: "visual" in name or "vision" in name),
    ):
        model = load_model(base, "float32")
        model = add_adapter(model, Recipe(lora_rank=8)) if kind == "lora" else model
        for parameter_name, parameter in model.named_parameters():
            if parameter.dim() > 1 and chosen(parameter_name):
                weights = parameter.detach()
                spread = max(0.3 * float(weights.std()), 0.05)
                weights += spread * torch.randn_like(weights)

        if kind != "base":
            model.save_pretrained(root / name)
        canary = make_canary(
            model, general_texts(processor.tokenizer, processor), processor
        )
        checkpoints[name] = Checkpoint(name, kind, root / name, canary)
    return checkpoints


def vision_case(name, root, checkpoints, sessions):
    processor = load_processor(root / "base")
    pictures = [
        draw_picture(root / f"{n}.png", n, size) for n, size in enumerate(SIZES)
    ]
    texts = [QUESTIONS[n % len(QUESTIONS)] for n in range(len(pictures))]
    return Case(
        name,
        root / "base",
        checkpoints,
        processor.tokenizer,
        encode_image_prompts(processor, texts, [1] * len(texts)),
        processor.tokenizer.convert_tokens_to_ids(list("0123456789")),
        ("base", "lora", "tower", "base", "full", "lora", "tower", "full", "base"),
        sessions,
        [[picture] for picture in pictures],
        processor,
    )
