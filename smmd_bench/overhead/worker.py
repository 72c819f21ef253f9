"""The process of one row: `python -m smmd_bench.overhead.worker REQUEST.json EVENTS_FD`.

It runs the real `Trainer.train()`: the stock one of transformers, or `ObjectiveTrainer`, on the
same rows with the same `TrainingArguments`. Two steps come first in which nothing is timed, and on
a CPU memory is read. Before these two, and before each step after them, it waits for a line on
stdin. Events go to the given file descriptor as JSON lines:

    {"event": "ready", "device": NAME, "threads": n}     the model is built
    {"event": "prepared"}                                the first two steps are done
    {"event": "step", "step": k, "wall": s, "cpu": s}    k steps after them are done
    {"event": "done", "peak_bytes": n}                   after the last step
    {"event": "failed", "message": SENTENCE}
"""

import math
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, TextIO

import torch
from transformers import PrinterCallback, Trainer, TrainerCallback, set_seed

from ..models.loading import quiet_libraries
from ..plugin_system.registry import load_loss
from ..run.process import start
from ..training.stage import training_arguments
from ..training.trainer import ObjectiveTrainer, objective_forward
from .batches import PREPARATION, synthetic_rows, synthetic_vocabulary
from .geometry import build_model
from .memory import allocate, peak_bytes, reset_peak
from .settings import STOCK, OverheadSettings

Send = Callable[[dict[str, object]], None]


class StepClock(TrainerCallback):  # type: ignore[misc]
    """Times the steps: from one step's end to the next one's, the waiting between them left out.

    So a period has what the Trainer does after a step (its log), the next batch and the next step
    in it. `cpu` counts all threads of the process. peak: bytes; on a CPU of the first two steps.
    """

    def __init__(self, device: str, send: Send, grants: TextIO) -> None:
        self.device, self.send, self.grants = device, send, grants
        self.wall = self.cpu = 0.0
        self.peak: int | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The model, the optimiser and the data are there."""
        reset_peak(self.device)
        name = device_name(self.device)
        self.send({"event": "ready", "device": name, "threads": torch.get_num_threads()})
        self._wait()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An optimiser step is done."""
        step = state.global_step - PREPARATION
        if step < 0:
            return
        self._synchronise()
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        if step == 0 or self.device == "cuda":
            self.peak = peak_bytes(self.device)
        if step == 0:
            allocate(exact=False)
            self.send({"event": "prepared"})
        else:
            self.send({"event": "step", "step": step, "wall": wall, "cpu": cpu})
        if state.global_step < state.max_steps:
            self._wait()

    def _wait(self) -> None:
        if not self.grants.readline():
            raise EOFError("the process that measures has gone")
        self._synchronise()
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def _synchronise(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


def train_row(
    settings: OverheadSettings, row: str, repeat: int, send: Send, grants: TextIO
) -> Trainer:
    """Build the model of a row and train it, step by granted step; returns the Trainer.

    Raises FloatingPointError if a step's loss is not finite.
    """
    allocate(exact=True)
    seed = settings.seed + repeat
    set_seed(seed)
    model = build_model(settings.config, settings.recipe, settings.device)
    clock = StepClock(settings.device, send, grants)
    rows = synthetic_rows(settings, repeat)
    if row != STOCK:  # as in the train stage: it keys the noise of a loss, and no model takes it
        rows = [{**item, "example": torch.tensor(at)} for at, item in enumerate(rows)]
    with tempfile.TemporaryDirectory() as folder:
        steps, gpu = settings.steps + PREPARATION, settings.device == "cuda"
        args = training_arguments(
            settings.recipe, seed, Path(folder), steps=steps, saves=False, gpu=gpu
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
    send({"event": "done", "peak_bytes": clock.peak})
    return trainer


def device_name(device: str) -> str:
    """The GPU, or the model of the CPU."""
    if device == "cuda":
        return str(torch.cuda.get_device_name())
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line for line in lines if line.startswith("model name")).split(":")[1].strip()
    return "CPU"


def main() -> int:
    """Run one row; status 1 if it failed."""
    with start() as (request, events):
        try:
            quiet_libraries()
            settings = OverheadSettings(**request["settings"])
            if settings.threads:
                torch.set_num_threads(settings.threads)
            train_row(settings, request["row"], request["repeat"], events.send, sys.stdin)
        except Exception as error:
            traceback.print_exc()
            message = " ".join(str(error).split())
            events.send({"event": "failed", "message": f"{type(error).__name__}: {message}"})
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
