"""Pre-train `builtin/tiny` from scratch on arithmetic expressions; resumable, seeded, logged.

    nice -n 19 python scripts/pretrain_tiny.py RUNDIR --minutes 120
    python scripts/pretrain_tiny.py RUNDIR --export smmd_bench/models/builtin/tiny

The first command trains (and goes on where a killed one stopped), appends to RUNDIR/log.jsonl
and saves RUNDIR/state.pt every few minutes. The second writes the model as safetensors beside the
tokenizer. Batch k depends on the seed and k alone, so an interruption changes nothing but time.
Only expressions of the task's train split are used: its validation and test stay unseen. A resumed
training may take another recipe; RUNDIR/phases.json says which one held from which step on.

Muon for the matrices inside the blocks, AdamW for the rest, a constant learning rate after a short
warm-up: the checkpoint is made to be fine-tuned, so its learning rate is never annealed.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
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
    update,
    warm_up,
)
from smmd_bench.tasks._mixed_expressions import REGIMES, Problem, problems, split_of
from smmd_bench.tasks.arithmetic import PROMPT, TRAINING_LEVELS
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoTokenizer, PreTrainedTokenizerBase, Qwen2Config, Qwen2ForCausalLM

TOKENIZER = Path(__file__).parent.parent / "smmd_bench" / "models" / "builtin" / "tiny"
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
    optimizers = make_optimizers(recipe, blocks, rest)
    step, seconds = resume(folder, model, optimizers)
    note_phase(folder, step, recipe)
    held_out = {
        "few": draw(recipe, "held out few", "validation", 1_000, 0.0),
        "mixed": draw(recipe, "held out mixed", "validation", 1_000, 1.0),
    }
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
        warm_up(optimizers, recipe, step)
        with torch.autocast(device, torch.bfloat16, enabled=recipe.bf16):
            loss = F.cross_entropy(forward(model, ids, mask), labels[mask])
        loss.backward()
        update(optimizers, model)
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
            log(folder, line)
        if now - saved_at > save_every * 60:
            save(folder, model, optimizers, step, seconds + now - start)
            saved_at = now
    save(folder, model, optimizers, step, seconds + time.monotonic() - start)


def main() -> None:
    flags = parser(__doc__, Recipe)
    flags.add_argument("--minutes", type=float, default=60)
    flags.add_argument("--save-every", type=float, default=3, help="minutes")
    arguments = flags.parse_args()
    torch.set_num_threads(arguments.threads)
    if not arguments.export:
        recipe = recipe_of(arguments, Recipe)
        train(arguments.folder, recipe, arguments.minutes, arguments.save_every)
        return
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    model = build(last_recipe(arguments.folder, Recipe), tokenizer)
    model.config.use_cache = True
    export(arguments.folder, arguments.export, model, model, tokenizer)


if __name__ == "__main__":
    main()
