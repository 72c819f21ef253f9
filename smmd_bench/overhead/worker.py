"""The process of one row: `python -m smmd_bench.overhead.worker REQUEST.json EVENTS_FD`.

It runs the real `Trainer.train()`: the stock one of transformers, or `ObjectiveTrainer`, on the
same rows with the same `TrainingArguments`. Its last event has the seconds of each step, the peak
memory, and what it ran on.
"""

import gc
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    set_seed,
)

from ..contracts import NumericVocabulary
from ..errors import UserError
from ..experiment.provenance import describe_stage
from ..models.loading import add_adapter, quiet_libraries
from ..models.recipe import Recipe
from ..plugin_system.registry import load_loss
from ..run.process import start
from ..training.faster_steps import fast_products
from ..training.stage import training_arguments
from ..training.trainer import ObjectiveTrainer, objective_forward
from .settings import STOCK, OverheadSettings


class OperationCount(TorchDispatchMode):  # type: ignore[misc]
    """Counts the operations inside that are no views: a GPU launches most of them."""

    def __init__(self) -> None:
        super().__init__()
        self.names = Counter[str]()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if not function.is_view:
            self.names[str(function)] += 1
        return function(*args, **(kwargs or {}))


class StepClock(TrainerCallback):  # type: ignore[misc]
    """Times the steps, from one step's end to the next one's: wall and CPU seconds of each.

    So a period has what the Trainer does after a step (its log), the next batch and the next step
    in it. CPU seconds count all threads of the process. The operations of one more step are
    counted, which takes a time of its own.
    """

    def __init__(
        self, device: str, timed: int, report: Callable[[int, int], None]
    ) -> None:
        self.device, self.timed, self.report = device, timed, report
        self.steps: list[tuple[float, float]] = []
        self.count = OperationCount()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The model, the optimiser and the data are there."""
        reset_peak(self.device)
        self.last = self._now()

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An optimiser step begins."""
        if state.global_step == self.timed:
            self.peak = peak_bytes(self.device)
            self.count.__enter__()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An optimiser step is done."""
        if state.global_step > self.timed:
            self.count.__exit__(None, None, None)
            return
        wall, cpu = self._now()
        self.steps.append((wall - self.last[0], cpu - self.last[1]))
        # What the report takes is no part of the next step.
        self.report(state.global_step, self.timed)
        self.last = self._now()

    def _now(self) -> tuple[float, float]:
        if self.device == "cuda":  # kernels run on after the call returns
            torch.cuda.synchronize()
        return time.perf_counter(), time.process_time()


def train_row(
    settings: OverheadSettings,
    row: str,
    repeat: int,
    report: Callable[[int, int], None],
) -> tuple[Trainer, dict[str, Any]]:
    """Build the model of a row and train it; the Trainer, and what was measured."""
    # Rows of a repeat have the same weights and data, those of another repeat others.
    set_seed(repeat)
    model = build_model(settings.config, settings.recipe, settings.device)
    clock = StepClock(settings.device, settings.steps, report)
    rows = synthetic_rows(settings, repeat)
    trainer_class: Any = Trainer
    forward: AbstractContextManager[None] = nullcontext()
    options: dict[str, Any] = {}
    if row != STOCK:
        tokens = synthetic_vocabulary(
            settings.config["vocab_size"], settings.numeric_tokens
        )
        loss = load_loss(row).bind(tokens).to(settings.device)
        # As in the train stage, `example` keys the noise of a loss.
        for number, item in enumerate(rows):
            item["example"] = torch.tensor(number)
        trainer_class = ObjectiveTrainer
        options = {"numeric_loss": loss, "sampler": None}
        forward = objective_forward(model, loss)

    with tempfile.TemporaryDirectory() as folder:
        args = training_arguments(
            settings.recipe,
            repeat,
            Path(folder),
            steps=settings.steps + 1,
            saves=False,
            gpu=settings.device == "cuda",
        )
        trainer = trainer_class(
            model=model, args=args, train_dataset=rows, callbacks=[clock], **options
        )
        trainer.on_halving = _refuse  # halves would be compared with whole ones
        trainer.remove_callback(PrinterCallback)
        with fast_products(model, settings.length), forward:
            trainer.train()
    return trainer, {
        "device": describe_stage("train")["device"],
        "peak_bytes": clock.peak,
        "operations": clock.count.names.total(),
        "steps": clock.steps,
    }


def _refuse(size: int) -> None:
    raise UserError(
        f"Out of memory with micro-batches of more than {size}: give --batch-size."
    )


def build_model(config: Mapping[str, Any], recipe: Recipe, device: str) -> Any:
    """Build a model with random weights on `device`, with the recipe's adapter if it has one. As in
    the train stage, full fine-tuning in bfloat16 keeps float32 weights."""
    dtype = "float32" if recipe.method == "full" else recipe.dtype
    shape = AutoConfig.for_model(**config)

    with torch.device(device):  # where the weights are drawn
        model = AutoModelForCausalLM.from_config(shape, dtype=getattr(torch, dtype))
        return add_adapter(model, recipe) if recipe.method == "lora" else model


def reset_peak(device: str) -> None:
    """Count the peak from here; what is held now (the weights) stays in it."""
    gc.collect()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    else:
        # not on Linux, or forbidden: the peak is that of the whole process
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")


def peak_bytes(device: str) -> int | None:
    """Read the peak of CUDA memory, or of the resident set; None where it cannot be known."""
    if device == "cuda":
        return int(torch.cuda.max_memory_allocated())
    with suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM"))
        return 1024 * int(peak.split()[1])
    return None


def synthetic_vocabulary(vocab_size: int, numeric_tokens: int) -> NumericVocabulary:
    """Spread N tokens with the values 0..N-1 over a vocabulary of `vocab_size` tokens."""
    ids = torch.linspace(
        0, vocab_size - 1, numeric_tokens, dtype=torch.float64
    ).long()  # [N]
    return NumericVocabulary(
        ids, torch.arange(numeric_tokens, dtype=torch.float64), "synthetic"
    )


def synthetic_rows(settings: OverheadSettings, repeat: int) -> list[dict[str, Any]]:
    """Draw the rows of all steps of a repeat: {input_ids, attention_mask, labels} of [length].

    They follow from the repeat alone, so that every loss sees the same. Values of one, two, ...
    digits are alike often, so that NTIL has digits at N = 1000.
    """

    rng = np.random.default_rng(repeat)
    n = settings.numeric_tokens
    number = settings.steps * settings.batch_size
    vocab_size = settings.config["vocab_size"]
    numeric = synthetic_vocabulary(vocab_size, n).token_ids.numpy()  # [N]
    every = np.arange(vocab_size)
    words = np.setdiff1d(every, numeric)
    ids = rng.choice(words, (number, settings.length))  # [rows, length]

    # First how many digits a value has, then the value: by value alone most would have the most.
    supervised = settings.length // 4
    digits = len(str(n - 1))
    powers = 10 ** rng.integers(digits, size=(number, supervised))
    lowest = np.where(powers == 1, 0, powers)
    highest = np.minimum(10 * powers, n)
    values = rng.integers(lowest, highest)
    ids[:, -supervised:] = numeric[values]

    labels = ids.copy()
    labels[:, :-supervised] = -100
    mask = torch.ones(settings.length, dtype=torch.int64)
    rows = []
    for row, row_labels in zip(ids, labels, strict=True):
        rows.append(
            {
                "input_ids": torch.from_numpy(row),
                "attention_mask": mask,
                "labels": torch.from_numpy(row_labels),
            }
        )
    return rows


if __name__ == "__main__":
    with start() as (request, events):
        quiet_libraries()
        settings = OverheadSettings(**request["settings"])
        row = request["row"]
        repeat = request["repeat"]
        label = f"{row}, repeat {repeat + 1} of {settings.repeats}"
        _, result = train_row(settings, row, repeat, partial(events.progress, label))
        events.send({"event": "done", "found": result})
