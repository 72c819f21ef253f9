"""What a training keeps of each epoch, and from which state a killed one resumes."""

import math
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from transformers import TrainerCallback

from ..contracts import Canary
from ..contracts.executor import is_sharded
from ..objective.output_head import causal_model
from ..storage.addresses import digest_of_weights
from ..storage.cell import BASE
from ..storage.files import part_of, read_json, write_json
from .canary import make_canary
from .canary_texts import CanaryTexts
from .ranks import is_first, whole_weights
from .trainer import own_forward

WHOLE = "whole.json"  # written last to a state of the Trainer: the epochs behind it


class Epochs(TrainerCallback):  # type: ignore[misc]
    """Keeps each epoch's weights with their canary, and knows from which state to resume.

    reload: loads what was saved; where no process has all weights, the canary is taken of that.
    save_minutes: between states inside of an epoch; ten times as long as one takes at least. A
    state counts once the weights of the epochs behind it are in place.
    """

    def __init__(
        self,
        folder: Path,
        tokenizer: Any,
        processor: Any,
        texts: CanaryTexts,
        *,
        dtype: str = "float32",
        reload: Callable[[Path], Any] | None = None,
        save_minutes: float = math.inf,
    ) -> None:
        self.folder, self.tokenizer, self.processor = folder, tokenizer, processor
        self.texts, self.dtype = texts, dtype
        self.reload = reload
        self.save_every = 60 * save_minutes
        self.step_ended = self.saved = time.monotonic()
        self.base: Canary | None = None  # of the untrained model, each epoch's rival

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Ask the Trainer for its state where the last one is old enough, at the same step in all
        processes; at the end of an epoch it writes one anyway."""
        self.step_ended = time.monotonic()
        (due,) = broadcast_object_list(
            [self.step_ended - self.saved >= self.save_every]
        )
        control.should_save = due and not float(state.epoch).is_integer()

    def on_save(
        self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
    ) -> None:
        """Called when the Trainer has written its state."""
        # Each process writes its part of the state: it is complete when all are here.
        PartialState().wait_for_everyone()
        if float(state.epoch).is_integer():
            self._keep_epoch(state, model)
        if state.is_world_process_zero:
            folder = self.folder / "training" / f"checkpoint-{state.global_step}"
            write_json(folder / WHOLE, {"epochs": int(state.epoch)})
        self.saved = time.monotonic()

        # Saving takes a tenth of the time at most.
        if self.save_every:
            self.save_every = max(self.save_every, 10 * (self.saved - self.step_ended))

    def _keep_epoch(self, state: Any, model: Any) -> None:
        epoch = round(state.epoch)
        weights, canary = whole_weights(model), None
        # Where each process has all weights, the model in memory is what is saved.
        if weights is None:
            with own_forward(model):
                canary = self.canary_of(model)
        if not state.is_world_process_zero:
            return

        final = self.folder / "epochs" / str(epoch)
        unfinished = part_of(final)
        # A training that was killed while it saved has left a part of the epoch.
        shutil.rmtree(unfinished, ignore_errors=True)
        model.save_pretrained(unfinished, state_dict=weights)
        del weights  # before the canary loads them again
        self.tokenizer.save_pretrained(unfinished)
        if self.processor is not None:
            self.processor.save_pretrained(unfinished)

        if canary is None:
            assert self.reload is not None
            canary = self.canary_of(self.reload(unfinished))
        weights_digest = digest_of_weights(unfinished)
        receipt = {"epoch": epoch, "step": state.global_step, "weights": weights_digest}
        write_json(unfinished / "canary.json", {**receipt, "canary": asdict(canary)})
        # A training that resumed from a state before this epoch makes it again.
        shutil.rmtree(final, ignore_errors=True)
        unfinished.rename(final)

    def canary_of(self, model: Any) -> Canary:
        """Not of the wrapper, which the Trainer makes compute in bfloat16."""
        canary = make_canary(
            causal_model(model), self.texts, self.processor, dtype=self.dtype
        )
        if self.base is None:
            return canary
        return replace(canary, rivals=((BASE, self.base.log_probabilities),))

    def last_complete(self) -> str | None:
        """The newest complete state of the Trainer, as the first process finds it, which removes
        later ones and those of another strategy. Every process must call it."""
        states: list[str | None] = [self._find_state() if is_first() else None]
        broadcast_object_list(states)  # in place: all have the first one's
        return states[0]

    def _find_state(self) -> str | None:
        ends = [receipt["step"] for receipt in self.receipts()]
        newest: Path | None = None
        for state in (self.folder / "training").glob("checkpoint-*"):
            behind = sum(end <= _step(state) for end in ends)
            same_strategy = (state / "pytorch_model_fsdp.bin").exists() == is_sharded()
            if same_strategy and read_json(state / WHOLE) == {"epochs": behind}:
                newest = max(newest or state, state, key=_step)
            else:
                shutil.rmtree(state, ignore_errors=True)
        # Without a state the training begins anew, and its epochs with it.
        if newest is None:
            shutil.rmtree(self.folder / "epochs", ignore_errors=True)
        return None if newest is None else str(newest)

    def receipts(self) -> list[dict[str, Any]]:
        """Epoch, digest of the weights and canary of each checkpoint, in order."""
        files = (self.folder / "epochs").glob("[0-9]*/canary.json")
        receipts = [receipt for receipt in map(read_json, files) if receipt is not None]
        return sorted(receipts, key=lambda receipt: int(receipt["epoch"]))


def _step(state: Path) -> int:
    return int(state.name.removeprefix("checkpoint-"))
