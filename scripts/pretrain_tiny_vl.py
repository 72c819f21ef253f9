"""Pre-train `builtin/tiny-vl` from scratch on pictures; resumable, seeded, logged, annealed.

    nice -n 19 python scripts/pretrain_tiny_vl.py RUNDIR --minutes 60 --shares labels=1
    nice -n 19 python scripts/pretrain_tiny_vl.py RUNDIR --minutes 30 --shares charts=7,clocks=1
    nice -n 19 python scripts/pretrain_tiny_vl.py RUNDIR --anneal-steps 400
    python scripts/pretrain_tiny_vl.py RUNDIR --export smmd_bench/models/builtin/tiny-vl

A command trains for some minutes and goes on where the last one stopped, also after a kill, as
scripts/pretrain_tiny.py does. Batch k depends on the recipe and k alone, and holds pictures of one
source.

The loss is cross-entropy on the tokens of the answers, and at the beginning a second one: a linear
map reads off each of a picture's tokens which characters stand there. It is dropped at the export.
Without it nothing is read: the language model learns which answers are common, and no gradient
reaches the picture any more (of one digit in 112 x 112 pixels, 200 steps of 96 pictures, at two
learning rates, read none).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
from _pretraining import export, last_recipe, parser, recipe_of, train
from _tiny_pictures import SIZES, Lesson, picture_at
from _tiny_vl import Reader, Recipe
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoProcessor

BUILTIN = Path(__file__).parent.parent / "smmd_bench" / "models" / "builtin" / "tiny-vl"
BATCHES_A_BLOCK = 8
HELD_OUT_PICTURES = 200
CHARTS_AT_A_TIME = 8
"""Parts of a batch: what is kept for the backward pass is most of the memory."""


def lessons(recipe: Recipe, block: int) -> list[tuple[str, list[Lesson]]]:
    """The batches of a block, each with the name of its source; of pictures that are smaller than
    charts as many more."""
    rng = random.Random(f"{recipe.seed} {block}")
    parts = recipe.parts()
    key = f"{recipe.seed} {block}"
    made = []
    for batch in range(BATCHES_A_BLOCK):
        source = rng.choices([*parts], [*parts.values()])[0]
        count = recipe.batch * math.prod(SIZES["charts"]) // math.prod(SIZES[source])
        numbers = range(batch * count, (batch + 1) * count)
        made.append((source, [picture_at(source, key, number) for number in numbers]))
    return made


def batches_from(recipe: Recipe, step: int) -> Iterator[tuple[str, list[Lesson]]]:
    """Batches from a step on; the next block is drawn in another process meanwhile."""
    block, offset = divmod(step, BATCHES_A_BLOCK)
    with ProcessPoolExecutor(1) as pool:
        waiting = pool.submit(lessons, recipe, block)
        while True:
            drawn = waiting.result()
            block += 1
            waiting = pool.submit(lessons, recipe, block)
            yield from drawn[offset:]
            offset = 0


def main() -> None:
    flags = parser(__doc__, Recipe)
    flags.add_argument("--processor", type=Path, default=BUILTIN)
    arguments = flags.parse_args()
    torch.set_num_threads(arguments.threads)
    processor = AutoProcessor.from_pretrained(arguments.processor)
    if arguments.export:
        reader = Reader(last_recipe(arguments.folder, Recipe), processor)
        export(
            arguments.folder,
            arguments.export,
            reader,
            reader.model,
            processor.tokenizer,
        )
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    recipe = recipe_of(arguments, Recipe)
    reader = Reader(recipe, processor).to(device)
    held_out = {
        source: [picture_at(source, "held out", at) for at in range(HELD_OUT_PICTURES)]
        for source in SIZES
    }

    def losses_of(batch: tuple[str, list[Lesson]]) -> Iterator[Tensor]:
        source, pictures = batch
        parts = max(1, recipe.batch // CHARTS_AT_A_TIME)
        for at in range(parts):
            part = pictures[at::parts]
            with torch.autocast(device, torch.bfloat16, enabled=recipe.bf16):
                yield loss_of(source, part) * len(part) / len(pictures)

    def loss_of(source: str, pictures: list[Lesson]) -> Tensor:
        logits, labels, *_, tokens = reader(source, pictures)
        loss = F.cross_entropy(logits, labels)
        if recipe.reading_weight and any(len(lesson.letters) for lesson in pictures):
            wanted = reader.letters(source, pictures).to(device)
            read = reader.reading(tokens).float()
            missed = F.binary_cross_entropy_with_logits(read, wanted, reduction="sum")
            loss = loss + recipe.reading_weight * missed / wanted.sum()
        return loss

    def evaluate() -> dict[str, float]:
        asked = dict.fromkeys(SIZES, 1) | {"charts": 5, "plain": 5}
        return {
            name: reader.exact(name, held_out[name], n) for name, n in asked.items()
        }

    inner = reader.model.model
    # labels: 0.75 of the time of "sdpa"
    inner.language_model.set_attn_implementation("eager")
    for part in (
        *inner.language_model.layers,
        inner.language_model.norm,
        inner.visual.merger,
    ):
        part.compile(dynamic=True)
    inside = [
        *inner.visual.blocks.parameters(),
        *inner.language_model.layers.parameters(),
    ]
    matrices = [p for p in inside if p.ndim == 2]
    train(arguments, recipe, reader, matrices, batches_from, losses_of, evaluate)


if __name__ == "__main__":
    main()
