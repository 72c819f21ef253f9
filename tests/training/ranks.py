"""One of several processes that train: `python -m tests.training.ranks JSON`, with RANK and others
in the environment. Writes the gradients of every step of each case, from the first process."""

import json
import os
import random
import sys
from dataclasses import replace
from pathlib import Path

import torch
from transformers import AutoTokenizer, TrainerCallback

import smmd_bench as sb
from smmd_bench.contracts import Example
from smmd_bench.encoding.data import RightPaddingCollator, TokenisedExamples
from smmd_bench.models.loading import add_adapter, load_model
from smmd_bench.models.recipe import Recipe
from smmd_bench.training.stage import training_arguments
from smmd_bench.training.trainer import ObjectiveTrainer, objective_forward


class Gradients(TrainerCallback):
    """What each optimiser step was given, by the name of the parameter."""

    def __init__(self):
        self.steps = []

    def on_pre_optimizer_step(self, args, state, control, model=None, **_):
        gradients = {}
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                gradients[name] = whole(parameter.grad)
        self.steps.append(gradients)


def whole(tensor):
    return (tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor).clone()


def examples(tokenizer):
    """38 rows of unlike lengths; a third, among them all of some micro-batches, has no number."""
    rng = random.Random(0)
    pairs = [(rng.randrange(1000), rng.randrange(10)) for _ in range(38)]
    rows = [
        Example(f"{i}", f"{a}+{b}=", "many apples" if i % 3 == 0 else str(a + b), None)
        for i, (a, b) in enumerate(pairs)
    ]
    return TokenisedExamples(rows, tokenizer, 64)


def gradients(case, folder):
    """The gradients and the log of a training of three steps of 16 rows, the last of 6, and whether
    the weights were spread."""
    tokenizer = AutoTokenizer.from_pretrained(case["base"])
    recipe = Recipe(
        method="lora" if case["head"] == "frozen" else "full", lora_rank=4, epochs=1,
        learning_rate=1e-3, batch_size=16, micro_batch_size=case["micro"],
    )  # fmt: skip
    torch.manual_seed(0)
    model = load_model(Path(case["base"]), "float32")
    if case["head"] == "trainable":
        model.config.tie_word_embeddings = False
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    if recipe.method == "lora":
        model = add_adapter(model, recipe)
    model = model.double()
    loss = sb.load_loss(case["loss"]).bind(sb.numeric_vocabulary(tokenizer)).double()
    arguments = training_arguments(recipe, 0, folder, saves=False)
    seen = Gradients()
    trainer = ObjectiveTrainer(
        model=model,
        args=replace(arguments, optim="sgd"),
        train_dataset=examples(tokenizer),
        data_collator=RightPaddingCollator(tokenizer.pad_token_id),
        numeric_loss=loss,
        sampler=None,
        callbacks=[seen],
    )
    with objective_forward(model, loss):
        trainer.train()
    log = [line for line in trainer.state.log_history if "cross_entropy" in line]
    return seen.steps, log, any(hasattr(p, "full_tensor") for p in model.parameters())


def main():
    request = json.loads(sys.argv[1])
    out = Path(request["out"])
    for number, case in enumerate(request["cases"]):
        steps, log, sharded = gradients(case, out.parent / "trainer")
        if os.environ.get("RANK", "0") == "0":
            content = {"steps": steps, "log": log, "sharded": sharded}
            torch.save(content, out.with_suffix(f".{number}.pt"))

    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
