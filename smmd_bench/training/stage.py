"""The train stage of a cell: from the base checkpoint to one checkpoint an epoch.

CELL/train.json          receipt: address, kind, epochs and the canary of each, notes for people
CELL/train_log.parquet   loss and its parts at every step
CELL/epochs/K/           weights after epoch K (an adapter, or the full model)
CELL/training/           the state from which a killed training goes on; removed at the end
"""

from __future__ import annotations

import math
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from transformers import TrainerCallback, TrainingArguments, set_seed

from ..contracts import Progress
from ..errors import UserError
from ..experiment import Cell
from ..numbers import numeric_vocabulary
from ..recipe import Recipe
from ..results.files import read_json, write_json, write_parquet
from ..scoring.canary import make_canary
from ..scoring.checkpoints import at_most_positions
from .data import RightPaddingCollator, TokenisedExamples
from .models import add_adapter, load_model, load_tokenizer, quiet_libraries
from .numeric_loss import NoAuxiliary, NumericLoss
from .sampler import LengthGroups
from .trainer import ObjectiveTrainer, objective_forward, own_forward

_DROWNS = 10  # times the cross-entropy
_LOG_COLUMNS = [
    "step",
    "epoch",
    "loss",
    "cross_entropy",
    "auxiliary",
    "relative_auxiliary",
    "learning_rate",
    "grad_norm",
    "tokens",
    "units",
    "seconds",
]


def train_cell(cell: Cell, folder: Path, progress: Progress) -> None:
    """Train a cell and write its receipt; for the base, write down its canary."""
    quiet_libraries()
    tokenizer = load_tokenizer(cell.card.folder)
    # Full fine-tuning in bfloat16 keeps float32 weights, or small steps would be lost.
    dtype = "float32" if cell.recipe.method == "full" else cell.recipe.dtype
    model = load_model(cell.card.folder, cell.recipe.dtype if cell.is_base else dtype)
    if cell.is_base:
        canary = asdict(make_canary(model, tokenizer))
        _receipt(cell, folder, "base", [{"epoch": 0, "canary": canary}])
        return
    recipe = cell.recipe
    vocabulary = numeric_vocabulary(tokenizer, recipe.numeric_rule)
    loss = cell.loss_plugin.bind(vocabulary)
    label = f"train {cell.loss} seed {cell.seed}"
    examples = cell.task_plugin.examples("train", cell.data_seed, cell.size("train"))
    data = TokenisedExamples(
        examples,
        tokenizer,
        at_most_positions(cell.card.folder, recipe.max_length),
        lambda _, done, total: progress(label.replace("train", "tokenise", 1), done, total),
        chat=recipe.chat_template,
    )
    targets = data.numeric_targets(tokenizer, loss)
    if (note := _coverage_note(cell.loss, loss, targets)) is not None:
        progress(note, 0, 0)
    set_seed(cell.seed)
    if recipe.method == "lora":
        model = add_adapter(model, recipe)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    epochs = _Epochs(folder, tokenizer)
    trainer = ObjectiveTrainer(
        model=model,
        args=training_arguments(recipe, cell.seed, folder / "training"),
        train_dataset=data,
        data_collator=RightPaddingCollator(tokenizer.pad_token_id),
        callbacks=[epochs, _Steps(label, cell.loss, loss, progress)],
        numeric_loss=loss.to(device),
        sampler=LengthGroups(data.lengths, recipe.batch_size, cell.seed)
        if recipe.group_by_length
        else None,
    )
    progress(label, 0, max(1, -(-len(data) // recipe.batch_size)) * recipe.epochs)
    with objective_forward(model, trainer.numeric_loss):
        trainer.train(resume_from_checkpoint=epochs.last_complete())
    log = [line for line in trainer.state.log_history if "cross_entropy" in line]
    write_parquet(
        folder / "train_log.parquet",
        pd.DataFrame(log).reindex(columns=_LOG_COLUMNS),
        cell.addresses["train"],
    )
    relative = (line["relative_auxiliary"] for line in log if "relative_auxiliary" in line)
    scale = _scale_note(cell.loss, loss, next(relative, None))
    facts = {"numeric_targets": targets, "notes": [n for n in (note, scale) if n is not None]}
    _receipt(cell, folder, recipe.method, epochs.receipts(), **facts)
    shutil.rmtree(folder / "training")


def training_arguments(
    recipe: Recipe,
    seed: int,
    folder: Path,
    *,
    steps: int = -1,
    saves: bool = True,
    gpu: bool = True,
) -> TrainingArguments:
    """The Trainer's settings for a recipe, on one GPU where there is one (and `gpu`), else the CPU.

    steps: optimiser steps in place of the recipe's epochs. saves: one checkpoint an epoch.
    """
    gpu = gpu and torch.cuda.is_available()
    arguments = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=recipe.epochs,
        max_steps=steps,
        per_device_train_batch_size=recipe.micro_batch_size,
        gradient_accumulation_steps=recipe.batch_size // recipe.micro_batch_size,
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        warmup_steps=recipe.warmup_ratio,
        lr_scheduler_type={"constant": "constant_with_warmup"}.get(
            recipe.schedule, recipe.schedule
        ),
        max_grad_norm=recipe.max_grad_norm,
        gradient_checkpointing=recipe.gradient_checkpointing,
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="epoch" if saves else "no",
        save_total_limit=2,
        seed=seed,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        label_names=["labels"],
        dataloader_num_workers=0,
        dataloader_pin_memory=gpu,
        bf16=recipe.dtype == "bfloat16",
        use_cpu=not gpu,  # or bf16 is refused there
    )
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # a cell trains on one GPU: nn.DataParallel would change the batch
    return arguments


class _Epochs(TrainerCallback):  # type: ignore[misc]
    """Keeps each epoch's weights with their canary, and knows from which state to go on.

    The state of an epoch counts as complete once its weights are in place, which happens last.
    """

    def __init__(self, folder: Path, tokenizer: Any) -> None:
        self.folder, self.tokenizer = folder, tokenizer

    def on_save(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Called when the Trainer has written its state at the end of an epoch."""
        epoch = round(state.epoch)
        with own_forward(model):
            canary = asdict(make_canary(model, self.tokenizer))
        if not state.is_world_process_zero:
            return
        final = self.folder / "epochs" / str(epoch)
        part = final.with_name(f".{epoch}.part")
        shutil.rmtree(part, ignore_errors=True)
        model.save_pretrained(part)
        self.tokenizer.save_pretrained(part)
        write_json(
            part / "canary.json", {"epoch": epoch, "step": state.global_step, "canary": canary}
        )
        shutil.rmtree(final, ignore_errors=True)
        part.rename(final)

    def last_complete(self) -> str | None:
        """The newest Trainer state whose epoch's weights are in place; removes any later ones."""
        steps = [receipt["step"] for receipt in self._read()]
        found = None
        for state in (self.folder / "training").glob("checkpoint-*"):
            if int(state.name.removeprefix("checkpoint-")) in steps:
                found = max(found or state, state, key=lambda p: int(p.name.split("-")[1]))
            else:
                shutil.rmtree(state)
        if found is None:
            shutil.rmtree(self.folder / "epochs", ignore_errors=True)
        return None if found is None else str(found)

    def receipts(self) -> list[dict[str, Any]]:
        """Epoch and canary of each checkpoint, in order."""
        return sorted(self._read(), key=lambda receipt: int(receipt["epoch"]))

    def _read(self) -> list[dict[str, Any]]:
        files = (self.folder / "epochs").glob("[0-9]*/canary.json")
        return [receipt for receipt in map(read_json, files) if receipt is not None]


class _Steps(TrainerCallback):  # type: ignore[misc]
    """Reports progress, and stamps each step's line with its wall time."""

    def __init__(
        self, label: str, loss: str, numeric_loss: NumericLoss, progress: Progress
    ) -> None:
        self.label, self.loss, self.progress = label, loss, progress
        self.numeric_loss, self.weighed = numeric_loss, False
        self.began = time.monotonic()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock of a step."""
        self.began = time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """The Trainer has just appended the line to the state's history; NaN ends the training."""
        if not math.isfinite((logs or {}).get("loss", 0.0)):
            raise FloatingPointError(
                f"The loss became {logs['loss']} at step {state.global_step} of '{self.label}': "
                "lower learning_rate or the loss's lambda."
            )
        state.log_history[-1]["seconds"] = time.monotonic() - self.began
        if not self.weighed and "relative_auxiliary" in logs:
            self.weighed = True
            note = _scale_note(self.loss, self.numeric_loss, logs["relative_auxiliary"])
            if note is not None and state.global_step < 10:  # of a training from its beginning
                self.progress(note, 0, 0)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A step is done."""
        self.progress(self.label, state.global_step, state.max_steps)


def _coverage_note(name: str, loss: NumericLoss, targets: dict[str, int]) -> str | None:
    """A sentence where a loss leaves out some of the numeric targets; CE leaves out all."""
    numeric, covered = targets["numeric"], targets["covered"]
    if isinstance(loss, NoAuxiliary) or covered == numeric:
        return None
    return f"{name} acts on {covered:,} of {numeric:,} numeric targets ({covered / numeric:.1%})."


def _scale_note(name: str, loss: NumericLoss, relative: float | None) -> str | None:
    """A warning where the auxiliary drowns the cross-entropy at the first step that has it."""
    if relative is None or relative <= _DROWNS or loss.replaces_cross_entropy:
        return None
    return (
        f"{name}: at the first step the weighted auxiliary is {relative:.0f} times the "
        "cross-entropy and drowns it; a smaller lambda would balance them."
    )


def _receipt(
    cell: Cell, folder: Path, kind: str, epochs: list[dict[str, Any]], **facts: Any
) -> None:
    if not epochs:
        raise UserError(f"{cell.label} trained for no epoch: set epochs to 1 or more.")
    write_json(
        folder / "train.json",
        {"address": cell.addresses["train"], "kind": kind, "epochs": epochs, **facts},
    )
