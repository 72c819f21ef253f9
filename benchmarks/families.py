"""Tiny checkpoints and what is really trained from them: checkpoints near to one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from smmd_bench.contracts import Checkpoint
from smmd_bench.decoding.siblings import session_canaries
from smmd_bench.encoding.data import RightPaddingCollator, TokenisedExamples
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.tokenizers import load_tokenizer
from smmd_bench.training.stage import train_cell

DATA = Path(__file__).parent.parent / "tests" / "data" / "tokenizers"
TASK = "arithmetic[level=easy]"
ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2": ("digit", {"num_hidden_layers": 2, "tie_word_embeddings": True}),
    "llama": ("triple", {"num_hidden_layers": 2, "tie_word_embeddings": False}),
    "smollm3": ("triple", {"num_hidden_layers": 4, "tie_word_embeddings": True}),
}
"""By model_type of transformers: the tokenizer of tests/data, and what its config has."""
RECIPE: dict[str, Any] = {
    "dtype": "bfloat16",
    "train_examples": 64,
    "validation_examples": 4,
    "test_examples": 4,
    "batch_size": 8,
    "micro_batch_size": 8,
    "epochs": 2,
    "max_length": 400,
}
RATES = (5e-3, 1e-3)
"""Learning rates, by turns of the seeds: the lower one leaves checkpoints nearer to each other."""


@dataclass(frozen=True)
class Family:
    """A base and checkpoints trained from it, by (loss, seed, epoch), each with its canary."""

    base: Path
    checkpoints: dict[tuple[str, int, int], Checkpoint]


def make_base(architecture: str, folder: Path, *, seed: int = 0, steps: int = 150) -> Path:
    """Save a checkpoint that has seen a few thousand sums (in about 5 s)."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(seed)
    kind, shape = ARCHITECTURES[architecture]
    tokenizer = AutoTokenizer.from_pretrained(DATA / kind)
    config = AutoConfig.for_model(
        architecture,
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_attention_heads=2,  # vLLM has no CPU kernel for heads of less than 32
        num_key_value_heads=1,
        max_position_embeddings=512,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **shape,
    )
    tokenizer.save_pretrained(folder)
    model = AutoModelForCausalLM.from_config(config)
    _teach(model, load_tokenizer(folder), steps)
    model.save_pretrained(folder)
    return folder


def _teach(model: Any, tokenizer: Any, steps: int, batch: int = 16) -> None:
    """Plain training on the task's own examples, of another data seed than the adapters'."""
    task = Experiment((TASK,), ("ce",), engine="transformers").cells[0].task_plugin
    examples = task.examples("train", 1, batch * steps)
    rows = TokenisedExamples(examples, tokenizer, RECIPE["max_length"])
    collate = RightPaddingCollator(tokenizer.pad_token_id)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for start in range(0, batch * steps, batch):
        inputs = collate([rows[at] for at in range(start, start + batch)])
        del inputs["example"]
        model(**inputs).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def train_family(
    base: Path, folder: Path, losses: Sequence[str], seeds: Sequence[int], **recipe: Any
) -> Family:
    """Train with the harness's own stage, in bfloat16; every epoch's weights are kept."""
    cells = [
        cell
        for turn, rate in enumerate(RATES)
        if (own := tuple(seed for seed in seeds if seed % len(RATES) == turn))
        for cell in Experiment(
            (TASK,),
            tuple(losses),
            (str(base),),
            seeds=own,
            engine="transformers",
            base=False,
            recipe={**RECIPE, "learning_rate": rate, **recipe},
        ).cells
    ]
    placed = [(cell, folder / cell.addresses["train"]) for cell in cells]
    for cell, place in placed:
        train_cell(cell, place, lambda *_: None)
    canaries = session_canaries(placed)
    checkpoints = {}
    for cell, place in placed:
        for epoch, canary in canaries[place].items():
            name = f"{cell.label} epoch {epoch}"
            kind: Any = cell.recipe.method
            found = Checkpoint(name, kind, place / "epochs" / str(epoch), canary)
            checkpoints[cell.loss, cell.seed, epoch] = found
    return Family(base, checkpoints)
