"""What a plan needs: memory of its jobs, room on the disk, and what each training takes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

from ..contracts import Resources, Split
from ..encoding.prompts import describe_prompts
from ..experiment.cell import Cell
from ..models.recipe import Recipe
from ..models.tokenizers import load_processor, load_tokenizer
from .decodable import ENOUGH, base_of
from .run_directory import Stage

_SMALL = {"train": 200_000_000, "decode": 50_000_000}
"""Weights below which a second thread helps less than a second job. On two cores two threads train
`builtin/tiny` at 5.6 steps a second, two jobs 5.1 each; SmolLM2-135M by LoRA 1.0, two 1.0 each."""
# What a process takes beside the weights of its model.
_PROCESS_GB = 2.5
_FLOATS_A_WEIGHT = {"full": 4, "lora": 1}  # with gradient and AdamW's two moments

Lengths = Mapping[tuple[str, str, Split], float]
"""By model, task and split, the mean number of tokens: in training those of prompt and target, in
a test those of the target, which an engine writes."""


def estimate_resources(stage: str, cell: Cell) -> Resources:
    """Estimate what a job of that stage needs for the model of a cell."""
    if stage == "measure":
        return Resources(memory_gb=_PROCESS_GB)

    weights = cell.card.parameter_count()
    weights_gb = 4 * weights / 2**30  # float32
    # An engine holds the weights and its cache, a training their gradients and moments.
    if stage == "train":
        memory = _PROCESS_GB + _FLOATS_A_WEIGHT[cell.recipe.method] * weights_gb
    else:
        memory = _PROCESS_GB + weights_gb + cell.engine_settings.memory_gb

    threads = 1 if weights < _SMALL[stage] else None
    return Resources(gpus=1, threads=threads, memory_gb=memory)


def disk_bytes(cells: Sequence[Cell], slots: int) -> tuple[int, int]:
    """Estimate the bytes of weights on the disk when these cells are finished, and at most before:
    a cell in training has the Trainer's last two states, and one that waits for its decoding every
    epoch."""
    kept = 0
    single: list[int] = []
    every_epoch: list[int] = []
    bases = set()
    # A row and a trial may be one training.
    for cell in dict.fromkeys(cells):
        if not trains(cell):
            continue
        bases.add(base_of(cell))
        size = 4 * trainable_weights(cell)  # float32
        epochs = size * cell.recipe.epochs
        single.append(size)
        every_epoch.append(epochs)

        # The selected epoch stays beside the others, where these are kept.
        kept += size
        if cell.recipe.keep_epochs:
            kept += epochs

    # While an engine decodes as many cells of a base as it is worth, as many more are trained.
    number_waiting = slots + 2 * ENOUGH * len(bases)
    waiting = sum(nlargest(number_waiting, every_epoch))
    states = 2 * 3 * sum(nlargest(slots, single))  # with AdamW's moments
    return kept, kept + waiting + states


def trainable_weights(cell: Cell) -> int:
    """How many weights a training changes and saves: of an adapter, by the config alone."""
    from ..models.loading import adapter_weights

    if cell.recipe.method == "full":
        return cell.card.parameter_count()
    return adapter_weights(cell.card, cell.recipe.lora_targets, cell.recipe.lora_rank)


def trains(cell: Cell) -> bool:
    """Whether a cell has a training of its own."""
    return not (cell.is_base or cell.source or cell.grid)


def find_trainings(cells: Mapping[Cell, Stage]) -> list[Cell]:
    """Find the cells that lack a training of their own."""
    return [cell for cell, lacks in cells.items() if lacks == "train" and trains(cell)]


def steps_of(cell: Cell) -> int:
    """Count the optimiser steps of the training of a cell."""
    return count_steps(cell.recipe, cell.examples_there("train"))


def count_steps(recipe: Recipe, examples: int) -> int:
    """Count the optimiser steps of a training on so many examples."""
    return math.ceil(examples / recipe.batch_size) * recipe.epochs


@dataclass(frozen=True)
class Cost:
    """What a training takes, whatever its loss and seed. tokens: of all epochs, where examples were
    read. prompts: see `describe_prompts`."""

    model: str
    task: str
    steps: int
    tokens: int | None
    trainable: int
    parameters: int
    prompts: str

    @property
    def sentence(self) -> str:
        """The same for people."""
        tokens = "" if self.tokens is None else f", about {self.tokens:,} tokens"
        share = "all" if self.trainable == self.parameters else f"{self.trainable:,} of"
        return (
            f"A training of {self.model} on {self.task}: {self.steps:,} steps{tokens}; it changes "
            f"{share} {self.parameters:,} parameters; {self.prompts}."
        )


def costs_of(cells: Mapping[Cell, Stage], lengths: Lengths) -> list[Cost]:
    """What each kind of training takes of those that cells lack."""
    costs = []
    trained = find_trainings(cells)
    # Losses and seeds of a model and task are one kind.
    for cell in {(c.model, c.task, c.recipe): c for c in trained}.values():
        mean = lengths.get((cell.model, cell.task, "train"))
        examples = cell.examples_there("train") * cell.recipe.epochs
        folder = cell.card.folder
        processor = load_processor(folder) if cell.reads_images else None
        costs.append(
            Cost(
                model=cell.card.label,
                task=cell.task_label,
                steps=steps_of(cell),
                tokens=None if mean is None else round(mean * examples),
                trainable=trainable_weights(cell),
                parameters=cell.card.parameter_count(),
                prompts=describe_prompts(
                    load_tokenizer(folder), processor, chat=cell.recipe.chat_template
                ),
            )
        )
    # Settings that are tuned change none of this.
    return [*dict.fromkeys(costs)]
