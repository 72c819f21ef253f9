"""What a training keeps of each epoch, and from which epoch a killed one resumes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from ..contracts import Canary
from ..objective.output_head import causal_model
from ..storage.addresses import digest_of_weights
from ..storage.current import BASE
from ..storage.files import read_json, write_json
from .canary import make_canary
from .canary_texts import CanaryTexts
from .sharding import can_resume, whole_weights
from .trainer import own_forward


class Epochs(TrainerCallback):  # type: ignore[misc]
    """Keeps each epoch's weights with their canary, and knows from which state to resume.

    reload: loads what was saved; where no process has all weights, the canary is taken of that.
    The state of an epoch counts as complete once its weights are in place, which happens last.
    """

    def __init__(
        self,
        folder: Path,
        tokenizer: Any,
        processor: Any = None,
        *,
        texts: CanaryTexts | None = None,
        dtype: str = "float32",
        reload: Callable[[Path], Any] | None = None,
    ) -> None:
        self.folder, self.tokenizer, self.processor = folder, tokenizer, processor
        self.texts, self.dtype = texts, dtype
        self.reload = reload
        self.base: Canary | None = None

    def read_base(self, model: Any) -> Canary:
        """The canary of the untrained model, which each epoch's has as a rival."""
        self.base = self._canary(model)
        return self.base

    def on_save(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Called when the Trainer has written its state at the end of an epoch."""
        epoch = round(state.epoch)
        weights, canary = whole_weights(model), None
        if weights is None:
            with own_forward(model):
                canary = self._canary(model)
        if not state.is_world_process_zero:
            return
        final = self.folder / "epochs" / str(epoch)
        part = final.with_name(f".{epoch}.part")
        shutil.rmtree(part, ignore_errors=True)
        model.save_pretrained(part, state_dict=weights)
        del weights
        self.tokenizer.save_pretrained(part)
        if self.processor is not None:
            self.processor.save_pretrained(part)
        if canary is None:
            assert self.reload is not None
            canary = self._canary(self.reload(part))
        write_json(
            part / "canary.json",
            {
                "epoch": epoch,
                "step": state.global_step,
                "weights": digest_of_weights(part),
                "canary": asdict(canary),
            },
        )
        shutil.rmtree(final, ignore_errors=True)
        part.rename(final)

    def _canary(self, model: Any) -> Canary:
        texts = self.texts or self.tokenizer
        # not the wrapper, which the Trainer makes compute in bfloat16
        made = make_canary(causal_model(model), texts, self.processor, dtype=self.dtype)
        if self.base is None:
            return made
        return replace(made, rivals=((BASE, self.base.log_probabilities),))

    def last_complete(self) -> str | None:
        """The newest Trainer state whose epoch's weights are in place; removes any later ones, and
        those of another strategy."""
        steps = [receipt["step"] for receipt in self.receipts()]
        found = None
        for state in (self.folder / "training").glob("checkpoint-*"):
            if int(state.name.removeprefix("checkpoint-")) in steps and can_resume(state):
                found = max(found or state, state, key=lambda p: int(p.name.split("-")[1]))
            else:
                shutil.rmtree(state, ignore_errors=True)  # or another process of this training did
        if found is None:
            shutil.rmtree(self.folder / "epochs", ignore_errors=True)
        return None if found is None else str(found)

    def receipts(self) -> list[dict[str, Any]]:
        """Epoch, digest of the weights and canary of each checkpoint, in order."""
        files = (self.folder / "epochs").glob("[0-9]*/canary.json")
        found = [receipt for receipt in map(read_json, files) if receipt is not None]
        return sorted(found, key=lambda receipt: int(receipt["epoch"]))
