"""Pre-train `builtin/tiny` from scratch; resumable, seeded, logged, annealed at the end.

    nice -n 19 python scripts/pretrain_tiny.py RUNDIR --minutes 60 --shares facts=1,easy=2
    nice -n 19 python scripts/pretrain_tiny.py RUNDIR --minutes 60 --shares easy=1,paper=1,words=1
    nice -n 19 python scripts/pretrain_tiny.py RUNDIR --anneal-steps 2000
    python scripts/pretrain_tiny.py RUNDIR --export smmd_bench/models/builtin/tiny

A command trains for some minutes and goes on where the last one stopped, also after a kill. It
appends to RUNDIR/log.jsonl and saves RUNDIR/state.pt every five minutes. A later command may take
another recipe: RUNDIR/phases.json says which one held from which step on. `--anneal-steps` lowers
the learning rate linearly to zero and ends there. `--export` writes the model as safetensors beside
the tokenizer that scripts/build_tiny_tokenizer.py makes.

Batch k depends on the recipe and k alone, so an interruption changes nothing but time. The loss is
cross-entropy on the target's tokens. Muon trains the matrices inside the blocks, AdamW the rest.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from _pretraining import Recipe as Base
from _pretraining import export, last_recipe, parser, recipe_of, train
from _tiny_text import HELD_OUT, SOURCES, Pairs
from torch import Tensor
from torch.nn import functional as F
from transformers import (
    AutoTokenizer,
    PreTrainedTokenizerBase,
    Qwen3Config,
    Qwen3ForCausalLM,
)

BUILTIN = Path(__file__).parent.parent / "smmd_bench" / "models" / "builtin" / "tiny"
BATCHES_A_BLOCK = 32
"""Examples are sorted by length within a block of so many batches."""
HELD_OUT_EXAMPLES = 500
TOKENS_AT_A_TIME = 8192
"""Of a batch: what is kept for the backward pass is most of the memory."""


@dataclass(frozen=True)
class Recipe(Base):
    """Everything that the weights depend on; kept beside them."""

    shares: str = "facts=2,easy=4,words=1,svamp=1,dialogues=1"
    hidden: int = 256
    layers: int = 6
    heads: int = 4
    intermediate: int = 448


def build(recipe: Recipe, tokenizer: PreTrainedTokenizerBase) -> Qwen3ForCausalLM:
    torch.manual_seed(recipe.seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=-(-len(tokenizer) // 64) * 64,
            hidden_size=recipe.hidden,
            intermediate_size=recipe.intermediate,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            num_key_value_heads=recipe.heads,
            head_dim=recipe.hidden // recipe.heads,
            max_position_embeddings=tokenizer.model_max_length,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            use_cache=False,
        )
    )


def draw_block(recipe: Recipe, block: int) -> list[Pairs]:
    """The batches of a block: of one length each, in an order that the block draws."""
    total = recipe.batch * BATCHES_A_BLOCK
    key = f"{recipe.seed} {block}"
    drawn: Pairs = []
    for name, share in recipe.parts().items():
        drawn += SOURCES[name](key, "train", round(total * share))
    drawn.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
    batches = [drawn[i : i + recipe.batch] for i in range(0, len(drawn), recipe.batch)]
    random.Random(block).shuffle(batches)
    return (batches + batches[:1])[:BATCHES_A_BLOCK]


def batches_from(recipe: Recipe, step: int) -> Iterator[Pairs]:
    block, offset = divmod(step, BATCHES_A_BLOCK)
    while True:
        yield from draw_block(recipe, block)[offset:]
        block, offset = block + 1, 0


def encode(
    tokenizer: PreTrainedTokenizerBase, batch: Pairs
) -> tuple[Tensor, Tensor, Tensor]:
    """ids [B, T] right-padded, labels [B, T] and where they are supervised [B, T]."""
    prompts = tokenizer([prompt for prompt, _ in batch])["input_ids"]
    targets = tokenizer([target for _, target in batch])["input_ids"]
    width = max(len(p) + len(t) for p, t in zip(prompts, targets, strict=True))
    ids = torch.full((len(batch), width), tokenizer.pad_token_id)
    labels = torch.full_like(ids, -100)
    for i, (prompt, target) in enumerate(zip(prompts, targets, strict=True)):
        end = len(prompt) + len(target)
        ids[i, :end] = torch.tensor(prompt + target)
        labels[i, len(prompt) - 1 : end] = torch.tensor(
            [*target, tokenizer.eos_token_id]
        )
    return ids, labels, labels != -100


def forward(model: Qwen3ForCausalLM, ids: Tensor, mask: Tensor) -> Tensor:
    """Logits at the masked positions: [M, V]. Right padding needs no attention mask."""
    hidden = model.model(input_ids=ids).last_hidden_state
    return model.lm_head(hidden[mask]).float()


@torch.no_grad()
def exact(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase, pairs: Pairs
) -> float:
    """Share of targets whose every token is the argmax: what greedy decoding would get right."""
    pairs = sorted(pairs, key=lambda pair: len(pair[0]) + len(pair[1]))
    device, right = model.device, 0
    for start in range(0, len(pairs), 125):
        ids, labels, mask = (
            t.to(device) for t in encode(tokenizer, pairs[start : start + 125])
        )
        hits = torch.ones_like(labels, dtype=torch.bool)
        hits[mask] = forward(model, ids, mask).argmax(-1) == labels[mask]
        right += int(hits.all(1).sum())
    return right / len(pairs)


def main() -> None:
    flags = parser(__doc__, Recipe)
    flags.add_argument(
        "--start", type=Path, help="a folder whose weights and tokenizer it takes"
    )
    arguments = flags.parse_args()
    torch.set_num_threads(arguments.threads)
    tokenizer = AutoTokenizer.from_pretrained(arguments.start or BUILTIN)
    if arguments.export:
        model = build(last_recipe(arguments.folder, Recipe), tokenizer)
        export(arguments.folder, arguments.export, model, model, tokenizer)
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    recipe = recipe_of(arguments, Recipe)
    model = build(recipe, tokenizer).to(device)
    if arguments.start:
        model.load_state_dict(
            Qwen3ForCausalLM.from_pretrained(arguments.start).state_dict()
        )
    held_out = {
        name: source("held out", "validation", HELD_OUT_EXAMPLES)
        for name, source in HELD_OUT.items()
    }

    def losses_of(batch: Pairs) -> Iterator[Tensor]:
        ids, labels, mask = (t.to(device) for t in encode(tokenizer, batch))
        for rows in torch.arange(len(ids)).split(
            max(1, TOKENS_AT_A_TIME // ids.shape[1])
        ):
            said = labels[rows][mask[rows]]
            with torch.autocast(device, torch.bfloat16, enabled=recipe.bf16):
                logits = forward(model, ids[rows], mask[rows])
            yield F.cross_entropy(logits, said, reduction="sum") / mask.sum()

    def evaluate() -> dict[str, float]:
        return {
            name: exact(model, tokenizer, pairs) for name, pairs in held_out.items()
        }

    # a step takes 0.45 to 0.8 of the time that "sdpa" takes
    model.set_attn_implementation("eager")
    for layer in model.model.layers:
        layer.compile(dynamic=True)  # and 0.55 of that without, on CPU
    matrices = [p for p in model.model.layers.parameters() if p.ndim == 2]
    train(arguments, recipe, model, matrices, batches_from, losses_of, evaluate)


if __name__ == "__main__":
    main()
