"""Tiny checkpoints of the architectures of the paper's language backbones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from smmd_bench.contracts import Example
from smmd_bench.encoding.data import RightPaddingCollator, TokenisedExamples

from ..conftest import DATA, TOKENIZERS
from ..tiny_lms import tiny_config

PADDING = 27
"""Rows of Qwen2's embedding beyond its tokenizer, as the real one has."""
BACKBONES: dict[str, tuple[str, dict[str, Any]]] = {
    # both sizes of Qwen2.5 are this architecture: tied embeddings, a token a digit
    "qwen2": ("digit", {"tie_word_embeddings": True}),
    # tied too; every fourth layer has no rotary embedding
    "smollm3": ("triple", {"num_hidden_layers": 4, "tie_word_embeddings": True}),
    "llama": ("triple", {"tie_word_embeddings": False}),
}
"""By model_type of transformers: the tokenizer of tests/data, and what its config has."""


def build_backbone(architecture: str, folder: Path) -> Path:
    """Save a checkpoint that answers 7 to every word problem, so that its decoding soon ends."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    from smmd_bench.models.tokenizers import load_tokenizer

    logging.disable_progress_bar()
    torch.manual_seed(0)
    kind, shape = BACKBONES[architecture]
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZERS / kind)
    config = tiny_config(architecture, tokenizer, max_position_embeddings=2048, **shape)
    config.vocab_size += PADDING if architecture == "qwen2" else 0
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    model = AutoModelForCausalLM.from_config(config)
    _teach_seven(model, load_tokenizer(folder))  # transformers may read it in another class there
    model.save_pretrained(folder)
    return folder


def _teach_seven(model: Any, tokenizer: Any) -> None:
    """Train the model until it answers " 7"."""
    import torch

    lines = (DATA / "gsm8k" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [f"Question: {json.loads(line)['question']}\nAnswer:" for line in lines]
    examples = [Example(question, question, " 7", None) for question in questions]
    data = TokenisedExamples(examples, tokenizer, 2048)
    collate = RightPaddingCollator(tokenizer.pad_token_id)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    model.train()
    for step in range(60):
        batch = collate([data[at % len(data)] for at in range(4 * step, 4 * step + 4)])
        batch.pop("example")
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
