"""The process of one row: `python -m smmd_bench.overhead.worker REQUEST.json EVENTS_FD`.

It runs the real `Trainer.train()`: the stock one of transformers, or `ObjectiveTrainer`, on the
same rows with the same `TrainingArguments`. Its last event has the seconds of each step, the peak
memory, and what it ran on.
"""

import gc
import math
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PrinterCallback, Trainer, TrainerCallback, set_seed

from ..models.loading import quiet_libraries
from ..plugin_system.registry import load_loss
from ..run.process import start
from ..training.stage import training_arguments
from ..training.trainer import ObjectiveTrainer, objective_forward
from .settings import STOCK, OverheadSettings, build_model, synthetic_vocabulary

_DIGITS = 4
"""Numeric tokens of a number, where there are other tokens enough to part the numbers."""


class StepClock(TrainerCallback):  # type: ignore[misc]
    """Times the steps, from one step's end to the next one's: wall and CPU seconds of each.

    So a period has what the Trainer does after a step (its log), the next batch and the next step
    in it. CPU seconds count all threads of the process.
    """

    def __init__(self, device: str, report: Callable[[int], None]) -> None:
        self.device, self.report = device, report
        self.steps: list[tuple[float, float]] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The model, the optimiser and the data are there."""
        reset_peak(self.device)
        self.last = self._now()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An optimiser step is done."""
        now = self._now()
        self.steps.append((now[0] - self.last[0], now[1] - self.last[1]))
        self.report(state.global_step)
        self.last = self._now()

    def _now(self) -> tuple[float, float]:
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter(), time.process_time()


def train_row(
    settings: OverheadSettings, row: str, repeat: int, report: Callable[[int], None]
) -> tuple[Trainer, dict[str, Any]]:
    """Build the model of a row and train it; the Trainer, and what was measured.

    Raises FloatingPointError if a step's loss is not finite.
    """
    seed = settings.seed + repeat
    set_seed(seed)
    model = build_model(settings.config, settings.recipe, settings.device)
    clock = StepClock(settings.device, report)
    rows = synthetic_rows(settings, repeat)
    if row != STOCK:  # as in the train stage: it keys the noise of a loss, and no model takes it
        rows = [{**item, "example": torch.tensor(at)} for at, item in enumerate(rows)]
    with tempfile.TemporaryDirectory() as folder:
        gpu = settings.device == "cuda"
        args = training_arguments(
            settings.recipe, seed, Path(folder), steps=settings.steps, saves=False, gpu=gpu
        )
        forward: AbstractContextManager[None] = nullcontext()
        arguments = {"model": model, "args": args, "train_dataset": rows, "callbacks": [clock]}
        if row == STOCK:
            trainer = Trainer(**arguments)
        else:
            tokens = synthetic_vocabulary(settings.config["vocab_size"], settings.numeric_tokens)
            loss = load_loss(row).bind(tokens).to(settings.device)
            trainer = ObjectiveTrainer(numeric_loss=loss, sampler=None, **arguments)
            forward = objective_forward(model, loss)
        trainer.remove_callback(PrinterCallback)
        with forward:
            trainer.train()
    for line in trainer.state.log_history:
        if not math.isfinite(line.get("loss", 0.0)):
            raise FloatingPointError(f"the loss became {line['loss']} at step {line['step']}")
    facts = {"device": device_name(settings.device), "threads": torch.get_num_threads()}
    return trainer, {"steps": clock.steps, "peak_bytes": peak_bytes(settings.device), **facts}


def device_name(device: str) -> str:
    """The GPU, or the model of the CPU."""
    if device == "cuda":
        return str(torch.cuda.get_device_name())
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line for line in lines if line.startswith("model name")).split(":")[1].strip()
    return "CPU"


def reset_peak(device: str) -> None:
    """Count the peak from here; what is held now (the weights) stays in it."""
    gc.collect()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    else:
        with suppress(OSError):  # not on Linux, or forbidden: the peak is that of the whole process
            Path("/proc/self/clear_refs").write_text("5")


def peak_bytes(device: str) -> int | None:
    """Of CUDA memory that was allocated, or of the resident set; None where it cannot be known."""
    if device == "cuda":
        return int(torch.cuda.max_memory_allocated())
    with suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    return None


def synthetic_rows(settings: OverheadSettings, repeat: int) -> list[dict[str, Any]]:
    """The rows of all steps of a repeat, each {input_ids, attention_mask, labels} of [length].

    They follow from the seed and the repeat alone, so that every loss sees the same.
    """
    rng = np.random.default_rng([settings.seed, repeat])
    vocab_size = settings.config["vocab_size"]
    count, length = settings.steps * settings.batch_size, settings.length
    numeric = synthetic_vocabulary(vocab_size, settings.numeric_tokens).token_ids.numpy()  # [N]
    others = np.setdiff1d(np.arange(vocab_size), numeric)  # [V - N]
    ids = rng.choice(others, (count, length))  # [count, length]
    start = length - settings.supervised_tokens
    places = start + np.flatnonzero(numeric_places(settings.supervised_tokens, settings.numeric))
    ids[:, places] = numeric[_values(rng, settings.numeric_tokens, (count, len(places)))]
    labels = ids.copy()
    labels[:, :start] = -100
    mask = torch.ones(length, dtype=torch.int64)
    return [
        {"input_ids": torch.from_numpy(i), "attention_mask": mask, "labels": torch.from_numpy(y)}
        for i, y in zip(ids, labels, strict=True)
    ]


def _values(rng: np.random.Generator, n: int, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Values below n: of one, two, ... digits alike often, so that NTIL has digits at N = 1000."""
    powers = [10**k for k in range(len(str(n - 1)))]
    bounds = np.array([[0 if low == 1 else low, min(10 * low, n)] for low in powers])  # [digits, 2]
    low, high = bounds[rng.integers(len(bounds), size=shape)].T
    values: NDArray[np.int64] = rng.integers(low.T, high.T)
    return values


def numeric_places(tokens: int, share: float) -> NDArray[np.bool_]:
    """[tokens] which of the supervised tokens of a row are numeric: numbers, parted by others.

    A number has about four tokens; more where there are too few others to part so many numbers,
    up to one number of all the tokens at a share of 1.
    """
    numeric = max(1, round(tokens * share))
    numbers = min(math.ceil(numeric / _DIGITS), tokens - numeric + 1)
    groups = (
        np.array_split(np.full(count, is_number), numbers)  # of about the same size
        for count, is_number in ((numeric, True), (tokens - numeric, False))
    )
    return np.concatenate([part for pair in zip(*groups, strict=True) for part in pair])


def main() -> int:
    """Run one row; status 1 if it failed."""
    with start() as (request, events):
        try:
            quiet_libraries()
            settings = OverheadSettings(**request["settings"])
            if settings.threads:
                torch.set_num_threads(settings.threads)

            def report(step: int) -> None:
                events.progress("steps", step, settings.steps)

            _, found = train_row(settings, request["row"], request["repeat"], report)
            events.send({"event": "done", **found})
        except Exception as error:
            traceback.print_exc()
            message = " ".join(str(error).split())
            events.send({"event": "failed", "message": f"{type(error).__name__}: {message}"})
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
