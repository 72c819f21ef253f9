"""The train stage of a cell: from the base checkpoint to one checkpoint an epoch.

The folder train/KEY is made in train/.KEY.part and gets its name at the end:

receipt.json     kind, what it was made with, the digest of each epoch's weights, notes for people
canaries.json    the canary of each epoch's weights, and of the base
log.parquet      loss and its parts at every step
epochs/K/        weights after epoch K (an adapter, or the full model)
training/        the state from which a killed training resumes; removed at the end
"""

import math
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from transformers import TrainerCallback, TrainingArguments, set_seed

from ..contracts import NoAuxiliary, NumericLoss, Progress
from ..contracts.executor import is_sharded, processes
from ..encoding.data import RightPaddingCollator, TokenisedExamples
from ..encoding.numbers import numeric_vocabulary
from ..errors import UserError
from ..experiment.cell import Cell
from ..experiment.compatibility import require_images
from ..experiment.provenance import describe_stage
from ..models.checkpoints import at_most_positions
from ..models.loading import add_adapter, load_model, load_trained, quiet_libraries
from ..models.recipe import Recipe
from ..models.tokenizers import load_processor, load_tokenizer
from ..storage.cell import BASE
from ..storage.files import part_of, remove_tree, write_json, write_parquet
from .canary import make_canary
from .canary_texts import canary_texts, general_texts
from .epochs import Epochs
from .faster_steps import compile_layers, fast_products
from .ranks import is_first
from .sampler import LengthGroups
from .tracking import tracking
from .trainer import ObjectiveTrainer, objective_forward

_Note = Callable[[str | None], None]
_DROWNS = 10  # times the cross-entropy
# to the Trainer, below 1 is a share, and 1 is one step
_ALL_STEPS = math.nextafter(1.0, 0.0)
_PATIENCE = 4 * 3600  # seconds that processes wait for the first one, which writes
_READERS = 2  # a picture of 224 x 224 takes one about 2 ms, a batch of text 1 ms
_SCHEDULES = {"constant": "constant_with_warmup"}  # ours -> the Trainer's
_LOG_COLUMNS = [
    "step", "epoch", "loss", "cross_entropy", "auxiliary", "relative_auxiliary", "learning_rate",
    "grad_norm", "tokens", "units", "seconds",
]  # fmt: skip


def train_cell(
    cell: Cell, run: Path, progress: Progress, track: str | None = None
) -> None:
    """Train a cell into the folder of its training; for the base, write down its canary.

    track: a tracker that hears of it, see `smmd_bench.training.tracking`.
    """
    final = cell.stored(run).trained
    unfinished = part_of(final)
    if not (unfinished / "receipt.json").exists():
        _train(cell, unfinished, progress, track)
    if is_first():
        shutil.rmtree(unfinished / "training", ignore_errors=True)
        remove_tree(final)  # whose weights are gone
        unfinished.rename(final)


def _describe_halving(size: int, batch_size: int) -> str:
    return (
        f"Out of memory: from here on a forward pass has {size} of the batch's {batch_size} "
        f"examples (micro_batch_size={size})."
    )


def _train(cell: Cell, folder: Path, progress: Progress, track: str | None) -> None:
    quiet_libraries()
    require_images(cell.task, cell.card)
    checkpoint = cell.card.folder
    recipe, tokenizer = cell.recipe, load_tokenizer(checkpoint)
    pixels = recipe.min_pixels, recipe.max_pixels
    processor = load_processor(checkpoint, *pixels) if cell.reads_images else None
    if cell.is_base:
        _write_base(cell, folder, tokenizer, processor)
        return

    loss = cell.loss_plugin.bind(numeric_vocabulary(tokenizer, recipe.numeric_rule))
    label = f"train {cell.short_label}"
    examples = cell.task_plugin.examples("train", cell.data_seed, cell.size("train"))
    longest = at_most_positions(checkpoint, recipe.max_length)
    chat = recipe.chat_template

    def report(what: str, done: int, total: int) -> None:
        progress(label.replace("train", what, 1), done, total)

    data = TokenisedExamples(
        examples, tokenizer, longest, report, processor=processor, chat=chat
    )
    targets = data.numeric_targets(tokenizer, loss)
    notes: list[str] = []

    def note(sentence: str | None) -> None:
        if sentence is not None:
            notes.append(sentence)
            progress(sentence, 0, 0)

    note(_coverage_note(cell.loss, loss, targets))

    reload = partial(load_trained, base=checkpoint, recipe=recipe)
    texts = canary_texts(examples, tokenizer, processor, longest, chat=chat)
    epochs = Epochs(
        folder, tokenizer, processor, texts, dtype=recipe.dtype, reload=reload,
        save_minutes=recipe.save_minutes,
    )  # fmt: skip

    steps = _Steps(label, cell.loss, loss, progress, note)
    trainer = _make_trainer(cell, folder, data, loss, tokenizer, [epochs, steps], track)
    trainer.on_halving = lambda size: note(_describe_halving(size, recipe.batch_size))

    # Every epoch's canary has the untrained model as a rival.
    base = epochs.base = epochs.canary_of(trainer.model)

    steps_of_epoch = math.ceil(len(data) / recipe.batch_size)
    progress(label, 0, max(1, steps_of_epoch) * recipe.epochs)
    forward = objective_forward(trainer.model, trainer.numeric_loss)
    with fast_products(trainer.model, int(data.lengths.max())), forward:
        if recipe.compile:
            compile_layers(trainer.model)
        trainer.train(resume_from_checkpoint=epochs.last_complete())
    # The first process alone writes, once the last epoch of all is in place.
    trainer.accelerator.wait_for_everyone()
    if is_first():
        _write_log(folder, trainer.state.log_history)
        facts = {"numeric_targets": targets, "notes": notes}
        _write_receipt(folder, recipe.method, epochs.receipts(), asdict(base), **facts)


def _write_base(
    cell: Cell, folder: Path, tokenizer: Any, processor: Any | None
) -> None:
    """Write the receipt of a base, whose weights are its checkpoint's."""
    dtype = cell.recipe.dtype
    model = load_model(cell.card.folder, dtype)
    texts = general_texts(tokenizer, processor)
    canary = asdict(make_canary(model, texts, processor, dtype=dtype))
    _write_receipt(folder, "base", [{"epoch": 0, "weights": BASE, "canary": canary}])


def _make_trainer(
    cell: Cell,
    folder: Path,
    data: TokenisedExamples,
    loss: NumericLoss,
    tokenizer: Any,
    callbacks: list[TrainerCallback],
    track: str | None,
) -> ObjectiveTrainer:
    """The model, fresh from its checkpoint and the cell's seed, in a Trainer."""
    recipe = cell.recipe
    # Full fine-tuning in bfloat16 keeps float32 weights, or small steps would be lost.
    dtype = "float32" if recipe.method == "full" else recipe.dtype
    model = load_model(cell.card.folder, dtype, recipe.attn_implementation)
    # The adapter's first weights are drawn from the seed, and so is the dropout.
    set_seed(cell.seed)
    if recipe.method == "lora":
        model = add_adapter(model, recipe)

    on_gpu = torch.cuda.is_available()
    sampler = LengthGroups(data.lengths, recipe.batch_size, cell.seed)

    args = training_arguments(
        recipe,
        cell.seed,
        folder / "training",
        readers=_READERS if on_gpu else 0,
        tracker=tracking(track, cell.label, folder),
    )
    # A single step would be the first of the warm-up, whose rate is 0.
    if len(data) <= recipe.batch_size and recipe.epochs == 1:
        args.warmup_steps = 0

    return ObjectiveTrainer(
        model=model,
        args=args,
        train_dataset=data,
        data_collator=RightPaddingCollator(tokenizer.pad_token_id),
        callbacks=callbacks,
        numeric_loss=loss,
        sampler=sampler if recipe.group_by_length else None,
        # Where a CPU's memory ends, the system kills the process: no error tells of it.
        rehearse=on_gpu,
    )


def training_arguments(
    recipe: Recipe,
    seed: int,
    folder: Path,
    *,
    steps: int = -1,
    saves: bool = True,
    gpu: bool = True,
    readers: int = 0,
    tracker: Mapping[str, Any] | None = None,
) -> TrainingArguments:
    """The Trainer's settings for a recipe, on one GPU where there is one (and `gpu`), else the CPU.

    steps: optimiser steps in place of the recipe's epochs. saves: one checkpoint an epoch. readers:
    processes that make batches ahead, which a GPU would wait for. tracker: settings of one.
    """
    gpu = gpu and torch.cuda.is_available()
    if recipe.batch_size % processes():
        raise UserError(
            f"A batch of {recipe.batch_size} examples cannot be shared by {processes()} GPUs: "
            "choose gpus_per_cell= of the executor so that it divides batch_size."
        )

    share = recipe.batch_size // processes()
    micro = math.gcd(share, recipe.micro_batch_size)  # all of one size
    arguments = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=recipe.epochs,
        max_steps=steps,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=share // micro,
        fsdp=is_sharded() or None,
        ddp_timeout=_PATIENCE,
        ddp_backend=None if processes() == 1 else "nccl" if gpu else "gloo",
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        warmup_steps=min(recipe.warmup_ratio, _ALL_STEPS),
        lr_scheduler_type=_SCHEDULES.get(recipe.schedule, recipe.schedule),
        max_grad_norm=recipe.max_grad_norm,
        gradient_checkpointing=recipe.gradient_checkpointing,
        logging_steps=1,
        logging_nan_inf_filter=False,  # or it logs an earlier mean in place of a NaN
        save_strategy="epoch" if saves else "no",
        # The Trainer removes older states before `Epochs` has marked the newest one as complete.
        save_total_limit=2,
        seed=seed,
        disable_tqdm=True,
        remove_unused_columns=False,  # the collator reads more than forward names
        label_names=["labels"],
        dataloader_num_workers=readers,
        dataloader_pin_memory=gpu,
        bf16=recipe.dtype == "bfloat16",
        use_cpu=not gpu,  # or bf16 is refused there
        **(tracker or {"report_to": []}),
    )

    # A process trains on one GPU: nn.DataParallel would change the batch.
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1
    return arguments


class _Steps(TrainerCallback):  # type: ignore[misc]
    """Reports progress, and stamps each step's line with its wall time."""

    def __init__(
        self, label: str, name: str, loss: NumericLoss, progress: Progress, note: _Note
    ) -> None:
        self.label, self.progress, self.note = label, progress, note
        self.name, self.loss, self.weighed = name, loss, False
        self.began = time.monotonic()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.began = time.monotonic()

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any
    ) -> None:
        """The Trainer has just appended the line to the state's history; NaN ends the training."""
        logs = logs or {}
        loss = logs.get("loss", 0.0)
        norm = logs.get("grad_norm", 0.0)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise FloatingPointError(
                f"At step {state.global_step} of '{self.label}' the loss is {loss} and its "
                f"gradient's norm {norm}: lower learning_rate, or the loss's lambda if it has one."
            )

        state.log_history[-1]["seconds"] = time.monotonic() - self.began
        if not self.weighed and "relative_auxiliary" in logs:
            self.weighed = True
            # A resumed training has its first steps in the history alone.
            relatives = [line.get("relative_auxiliary") for line in state.log_history]
            first = next(relative for relative in relatives if relative is not None)
            self.note(_scale_note(self.name, self.loss, first))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.progress(self.label, state.global_step, state.max_steps)


def _coverage_note(name: str, loss: NumericLoss, targets: dict[str, int]) -> str | None:
    """A sentence where a loss leaves out some of the target tokens with digits; CE leaves all."""
    digits, covered = targets["digit_tokens"], targets["covered"]
    if isinstance(loss, NoAuxiliary) or covered >= digits:
        return None
    return f"{name} acts on {covered:,} of {digits:,} targets with digits ({covered / digits:.1%})."


def _scale_note(name: str, loss: NumericLoss, relative: float) -> str | None:
    """A warning where the auxiliary drowns the cross-entropy at the first step that has it."""
    if relative <= _DROWNS or loss.replaces_cross_entropy:
        return None
    return (
        f"{name}: at the first step the weighted auxiliary is {relative:.0f} times the "
        "cross-entropy and drowns it; a smaller lambda would balance them."
    )


def _write_log(folder: Path, history: list[dict[str, Any]]) -> None:
    # The Trainer's last line is of the whole training.
    steps = [line for line in history if "cross_entropy" in line]
    frame = pd.DataFrame(steps).reindex(columns=_LOG_COLUMNS)
    write_parquet(folder / "log.parquet", frame)


def _write_receipt(
    folder: Path,
    kind: str,
    epochs: list[dict[str, Any]],
    base: dict[str, Any] | None = None,
    **facts: Any,
) -> None:
    canaries = {str(epoch["epoch"]): epoch.pop("canary") for epoch in epochs}
    content: dict[str, Any] = {"epochs": canaries}
    if base is not None:
        content["base"] = base
    write_json(folder / "canaries.json", content)

    # Last: a folder with a receipt is a finished training.
    receipt = {
        "kind": kind,
        "epochs": epochs,
        "made_with": describe_stage("train"),
        **facts,
    }
    write_json(folder / "receipt.json", receipt)
