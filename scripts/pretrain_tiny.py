"""Pre-train `builtin/tiny` from scratch on arithmetic expressions; resumable, seeded, logged.

    nice -n 19 python scripts/pretrain_tiny.py RUNDIR --minutes 120
    python scripts/pretrain_tiny.py RUNDIR --export smmd_bench/builtin/tiny

The first command trains (and goes on where a killed one stopped), appends to RUNDIR/log.jsonl
and saves RUNDIR/state.pt every few minutes. The second writes the model as safetensors beside the
tokenizer. Batch k depends on the seed and k alone, so an interruption changes nothing but time.
Only expressions of the task's train split are used: its validation and test stay unseen. A resumed
training may take another recipe; RUNDIR/phases.json says which one held from which step on.

Muon for the matrices inside the blocks, AdamW for the rest, a constant learning rate after a short
warm-up: the checkpoint is made to be fine-tuned, so its learning rate is never annealed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import torch
from smmd_bench.tasks._mixed_expressions import REGIMES, Problem, problems, split_of
from smmd_bench.tasks.arithmetic import PROMPT, TRAINING_LEVELS
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoTokenizer, PreTrainedTokenizerBase, Qwen2Config, Qwen2ForCausalLM

TOKENIZER = Path(__file__).parent.parent / "smmd_bench" / "builtin" / "tiny"
BATCHES_A_BLOCK = 32


@dataclass(frozen=True)
class Recipe:
    """Everything that the weights depend on; kept beside them."""

    seed: int = 0
    hidden: int = 192
    layers: int = 6
    heads: int = 6
    intermediate: int = 512
    batch: int = 256
    muon_lr: float = 0.02
    adamw_lr: float = 2e-3
    weight_decay: float = 0.01
    warmup_steps: int = 200
    operations: str = "1..2"
    levels: str = "easy+medium+hard"
    mixed_share: float = 0.0  # of the examples, those of the paper's levels
    bf16: bool = False


def build(recipe: Recipe, tokenizer: PreTrainedTokenizerBase) -> Qwen2ForCausalLM:
    torch.manual_seed(recipe.seed)
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=-(-len(tokenizer) // 64) * 64,
            hidden_size=recipe.hidden,
            intermediate_size=recipe.intermediate,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            num_key_value_heads=recipe.heads,
            max_position_embeddings=tokenizer.model_max_length,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            use_cache=False,
        )
    )


def draw(recipe: Recipe, key: str, split: str, count: int, mixed_share: float) -> list[Problem]:
    """`count` problems of a split, levels in turn, seeded by `key`."""
    low, high = (int(n) for n in recipe.operations.split(".."))
    rng, dirichlet = random.Random(key), np.random.RandomState(random.Random(key).getrandbits(32))
    few = [
        problems(REGIMES[level], rng, dirichlet, (low, high)) for level in recipe.levels.split("+")
    ]
    all_ = [problems(REGIMES[level], rng, dirichlet) for level in TRAINING_LEVELS]
    found: list[Problem] = []
    while len(found) < count:
        streams = all_ if rng.random() < mixed_share else few
        problem = next(streams[len(found) % len(streams)])
        if split_of(problem.expression) == split:
            found.append(problem)
    return found


def encode(
    tokenizer: PreTrainedTokenizerBase, batch: list[Problem]
) -> tuple[Tensor, Tensor, Tensor]:
    """ids [B, T] right-padded, and the supervised positions with their labels."""
    prompts = tokenizer([PROMPT.format(question=p.question) for p in batch])["input_ids"]
    targets = tokenizer([p.answer for p in batch])["input_ids"]
    eos = tokenizer.eos_token_id
    rows = [p + t for p, t in zip(prompts, targets, strict=True)]
    ids = torch.full((len(rows), max(map(len, rows))), tokenizer.pad_token_id)
    labels = torch.full_like(ids, -100)
    for i, (row, prompt, target) in enumerate(zip(rows, prompts, targets, strict=True)):
        ids[i, : len(row)] = torch.tensor(row)
        labels[i, len(prompt) - 1 : len(row)] = torch.tensor([*target, eos])
    return ids, labels, labels != -100


def forward(model: Qwen2ForCausalLM, ids: Tensor, mask: Tensor) -> Tensor:
    """Logits at the masked positions: [M, V]. Right padding needs no attention mask."""
    hidden = model.model(input_ids=ids).last_hidden_state
    return model.lm_head(hidden[mask]).float()


@torch.no_grad()
def exact(
    model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerBase, held_out: list[Problem]
) -> float:
    """Share of answers whose every token is the argmax: what greedy decoding would get right."""
    right = 0
    for start in range(0, len(held_out), 250):
        ids, labels, mask = encode(tokenizer, held_out[start : start + 250])
        hits = torch.ones_like(labels, dtype=torch.bool)
        hits[mask] = forward(model, ids, mask).argmax(-1) == labels[mask]
        right += int(hits.all(1).sum())
    return right / len(held_out)


def train(folder: Path, recipe: Recipe, minutes: float, save_every: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    model = build(recipe, tokenizer).to(device)
    blocks = [p for p in model.model.layers.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if p.ndim != 2 or all(p is not b for b in blocks)]
    optimizers = [
        torch.optim.Muon(blocks, lr=recipe.muon_lr, weight_decay=recipe.weight_decay),
        torch.optim.AdamW(rest, lr=recipe.adamw_lr, weight_decay=0.0, betas=(0.9, 0.98)),
    ]
    step, seconds = 0, 0.0
    state_file = folder / "state.pt"
    if state_file.exists():
        state = torch.load(state_file, weights_only=True)
        model.load_state_dict(state["model"])
        for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        step, seconds = state["step"], state["seconds"]
    note_phase(folder / "phases.json", step, recipe)
    held_out = {
        "few": draw(recipe, "held out few", "validation", 1_000, 0.0),
        "mixed": draw(recipe, "held out mixed", "validation", 1_000, 1.0),
    }
    base_lrs = [recipe.muon_lr, recipe.adamw_lr]
    start = saved_at = time.monotonic()
    losses: list[float] = []
    batches: list[list[Problem]] = []
    while time.monotonic() - start < minutes * 60:
        block, offset = divmod(step, BATCHES_A_BLOCK)
        if not batches or offset == 0:
            drawn = draw(
                recipe,
                f"{recipe.seed} {block}",
                "train",
                recipe.batch * BATCHES_A_BLOCK,
                recipe.mixed_share,
            )
            drawn.sort(key=lambda p: len(p.question))
            batches = [drawn[i : i + recipe.batch] for i in range(0, len(drawn), recipe.batch)]
            random.Random(block).shuffle(batches)
        ids, labels, mask = (t.to(device) for t in encode(tokenizer, batches[offset]))
        for optimizer, lr in zip(optimizers, base_lrs, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = lr * min(1.0, (step + 1) / recipe.warmup_steps)
        with torch.autocast(device, torch.bfloat16, enabled=recipe.bf16):
            loss = F.cross_entropy(forward(model, ids, mask), labels[mask])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(float(loss.detach()))
        step += 1
        now = time.monotonic()
        if step % 500 == 0 or now - saved_at > save_every * 60:
            line = {
                "step": step,
                "examples": step * recipe.batch,
                "minutes": round((seconds + now - start) / 60, 2),
                "loss": round(sum(losses) / len(losses), 4),
                **{k: exact(model.cpu(), tokenizer, v) for k, v in held_out.items()},
            }
            model.to(device)
            losses = []
            print(json.dumps(line), flush=True)
            with (folder / "log.jsonl").open("a") as log:
                log.write(json.dumps(line) + "\n")
        if now - saved_at > save_every * 60:
            save(state_file, model, optimizers, step, seconds + now - start)
            saved_at = now
    save(state_file, model, optimizers, step, seconds + time.monotonic() - start)


def note_phase(file: Path, step: int, recipe: Recipe) -> None:
    """Append the recipe that holds from this step on, if it is another one than before."""
    phases = json.loads(file.read_text()) if file.exists() else []
    if not phases or phases[-1]["recipe"] != asdict(recipe):
        phases.append({"from_step": step, "recipe": asdict(recipe)})
        file.write_text(json.dumps(phases, indent=1) + "\n")


def save(
    file: Path,
    model: Qwen2ForCausalLM,
    optimizers: list[torch.optim.Optimizer],
    step: int,
    seconds: float,
) -> None:
    part = file.with_suffix(".part")
    torch.save(
        {
            "model": model.state_dict(),
            "optimizers": [o.state_dict() for o in optimizers],
            "step": step,
            "seconds": seconds,
        },
        part,
    )
    part.replace(file)


def export(folder: Path, target: Path) -> None:
    recipe = Recipe(**json.loads((folder / "phases.json").read_text())[-1]["recipe"])
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    model = build(recipe, tokenizer)
    model.load_state_dict(torch.load(folder / "state.pt", weights_only=True)["model"])
    model.config.use_cache = True
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(target)
    (target / "pretraining.json").write_text((folder / "phases.json").read_text())
    (target / "pretraining.jsonl").write_text((folder / "log.jsonl").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--save-every", type=float, default=3, help="minutes")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--export", type=Path)
    for item in fields(Recipe):
        kind = type(item.default)
        parser.add_argument(
            f"--{item.name.replace('_', '-')}",
            default=item.default,
            type=(lambda text: text == "true") if kind is bool else kind,
        )
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.export:
        export(arguments.folder, arguments.export)
    else:
        recipe = Recipe(**{f.name: getattr(arguments, f.name) for f in fields(Recipe)})
        train(arguments.folder, recipe, arguments.minutes, arguments.save_every)


if __name__ == "__main__":
    main()
