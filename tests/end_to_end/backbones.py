"""Tiny checkpoints of the architectures of the paper's language backbones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..conftest import DATA

PADDING = 27
"""Rows of Qwen2's embedding beyond its tokenizer, as the real one has."""
BACKBONES: dict[str, tuple[str, dict[str, Any]]] = {
    # both sizes of Qwen2.5 are this architecture: tied embeddings, a token a digit
    "qwen2": ("digit", {"num_hidden_layers": 2, "tie_word_embeddings": True}),
    # tied too; every fourth layer has no rotary embedding
    "smollm3": ("triple", {"num_hidden_layers": 4, "tie_word_embeddings": True}),
    "llama": ("triple", {"num_hidden_layers": 2, "tie_word_embeddings": False}),
}
"""By model_type of transformers: the tokenizer of tests/data, and what its config has."""


def build_backbone(architecture: str, folder: Path) -> Path:
    """Save a checkpoint that answers 7 to every word problem, so that its decoding soon ends."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    from smmd_bench.models.loading import load_tokenizer

    logging.disable_progress_bar()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    kind, shape = BACKBONES[architecture]
    tokenizer = AutoTokenizer.from_pretrained(DATA / "tokenizers" / kind)
    config = AutoConfig.for_model(
        architecture,
        vocab_size=len(tokenizer) + (PADDING if architecture == "qwen2" else 0),
        hidden_size=64,
        intermediate_size=128,
        num_attention_heads=2,  # vLLM has no CPU kernel for heads of less than 32
        num_key_value_heads=1,
        max_position_embeddings=2048,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **shape,
    )
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    model = AutoModelForCausalLM.from_config(config)
    _teach_seven(model, load_tokenizer(folder))  # transformers may read it in another class there
    model.save_pretrained(folder)
    torch.set_num_threads(threads)
    return folder


def _teach_seven(model: Any, tokenizer: Any) -> None:
    """Train the model until it answers " 7"; rows are padded on the left."""
    import torch

    from smmd_bench.encoding.prompts import encode_prompts, encode_targets

    lines = (DATA / "gsm8k" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in lines]
    (answer,) = encode_targets(tokenizer, [" 7"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    model.train()
    for step in range(60):
        start = step * 4 % len(questions)
        texts = [f"Question: {question}\nAnswer:" for question in questions[start : start + 4]]
        rows = [[*ids, *answer] for ids in encode_prompts(tokenizer, texts)]
        width = max(map(len, rows))
        pad = [[tokenizer.pad_token_id] * (width - len(row)) for row in rows]
        ids = torch.tensor([p + row for p, row in zip(pad, rows, strict=True)])
        mask = torch.tensor([[0] * len(p) + [1] * len(r) for p, r in zip(pad, rows, strict=True)])
        labels = torch.full_like(ids, -100)
        labels[:, -len(answer) :] = ids[:, -len(answer) :]
        model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
