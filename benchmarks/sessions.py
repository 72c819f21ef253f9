"""K checkpoints in one vLLM session against K fresh engines.

    python benchmarks/sessions.py --kind lora --checkpoints 8
    python benchmarks/sessions.py --kind full --checkpoints 8

A fresh engine a checkpoint costs K(start + decode); one session should cost start + K decode, that
is (start + K decode) / K(start + decode) of it. `start` and `decode` are taken from the fresh
engines of the same run, and the session is measured in turns with them. Its canaries and swaps are
in its time. Random weights seldom stop early, so every decode does the same work. CPU seconds of
this process, in which the engines run, since others may use the machine; the clock on the wall is
printed beside them.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from smmd_bench.plugins.engines.vllm import VllmEngine
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

from smmd_bench.contracts import Checkpoint, EngineSettings
from smmd_bench.training.canary import make_canary
from smmd_bench.training.canary_texts import general_texts

TOKENIZER = Path(__file__).parent.parent / "tests" / "data" / "tokenizers" / "digit"


def clocks() -> tuple[float, float]:
    return time.process_time(), time.perf_counter()


def since(then: tuple[float, float]) -> tuple[float, float]:
    return time.process_time() - then[0], time.perf_counter() - then[1]


def make_checkpoints(kind: str, count: int, root: Path) -> tuple[Path, list[Checkpoint]]:
    """A random Qwen2 (hidden 256, 4 layers) and `count` variants of it."""
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=256, intermediate_size=512, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(root / "base")
    tokenizer.save_pretrained(root / "base")
    checkpoints = []
    for index in range(count):
        torch.manual_seed(index + 1)
        model: Any
        if kind == "full":
            model = Qwen2ForCausalLM(config)
        else:
            model = get_peft_model(
                Qwen2ForCausalLM.from_pretrained(root / "base"),
                LoraConfig(r=16, target_modules="all-linear", init_lora_weights=False),
            )
        path = root / f"{kind}{index}"
        model.save_pretrained(path)
        checkpoints.append(
            Checkpoint(path.name, kind, path, make_canary(model, general_texts(tokenizer)))  # type: ignore[arg-type]
        )
    return root / "base", checkpoints


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kind", choices=["lora", "full"], default="lora")
    parser.add_argument("--checkpoints", type=int, default=8)
    parser.add_argument("--prompts", type=int, default=400)
    parser.add_argument("--new-tokens", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    settings = EngineSettings(max_model_length=256, adapters=arguments.kind == "lora")
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    prompts = tokenizer([f"{n}+{n * 37 % 1000}=" for n in range(arguments.prompts)])["input_ids"]
    with tempfile.TemporaryDirectory() as folder:
        base, checkpoints = make_checkpoints(arguments.kind, arguments.checkpoints, Path(folder))

        def run(group: list[Checkpoint]) -> tuple[tuple[float, float], list[tuple[float, float]]]:
            """Time to start and stop an engine, and each checkpoint's decoding."""
            begin = clocks()
            decodes = []
            with VllmEngine().open(base, settings) as session:
                for checkpoint in group:
                    then = clocks()
                    session.generate(prompts, checkpoint, max_new_tokens=arguments.new_tokens)
                    decodes.append(since(then))
            whole = since(begin)
            return (
                (whole[0] - sum(d[0] for d in decodes), whole[1] - sum(d[1] for d in decodes)),
                decodes,
            )

        run(checkpoints[:1])  # imports
        rounds = [
            ([run([checkpoint]) for checkpoint in checkpoints], run(checkpoints))
            for _ in range(arguments.repeats)
        ]
    k = arguments.checkpoints
    for clock, name in enumerate(("CPU", "wall")):
        start = statistics.median(s[clock] for fresh, _ in rounds for s, _ in fresh)
        decode = statistics.median(d[0][clock] for fresh, _ in rounds for _, d in fresh)
        fresh_engines = statistics.median(
            sum(s[clock] + d[0][clock] for s, d in fresh) for fresh, _ in rounds
        )
        session = statistics.median(
            s[clock] + sum(d[clock] for d in decodes) for _, (s, decodes) in rounds
        )
        formula = (start + k * decode) / (k * (start + decode))
        print(
            f"{arguments.kind}, K={k}, {name} seconds: start {start:.2f}, decode {decode:.2f}; "
            f"one session {session:.2f}, fresh engines {fresh_engines:.2f}; ratio "
            f"{session / fresh_engines:.3f}, by the formula {formula:.3f}: "
            f"{session / fresh_engines / formula:.2f} of it"
        )


if __name__ == "__main__":
    main()
