"""A target's weights in memory, an adapter merged into its base once, and on disk where an engine
needs them there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..contracts import Canary, Checkpoint, CheckpointKind
from ..decoding.canary_check import check_canary
from ..models.loading import load_model
from ..training.canary import canary_from, make_canary
from .target import Target


def merged_model(target: Target) -> Any:
    """The transformers model of a target on the CPU, in its dtype, without any adapter left."""
    if target.kind != "lora":
        return load_model(Path(target.path), target.dtype)
    from peft import PeftModel

    model = load_model(Path(target.base), target.dtype)
    return PeftModel.from_pretrained(model, target.path).merge_and_unload(safe_merge=True).eval()


def checkpoint_of(target: Target, folder: Path) -> Checkpoint:
    """The target as an engine session takes it, with the canary that training wrote down."""
    canary = None if target.canary is None else canary_from(target.canary)
    kind: CheckpointKind = "base" if target.kind == "base" else "full"
    return Checkpoint(target.label, kind, folder, canary)


def require_canary(model: Any, target: Target) -> None:
    """Raise RuntimeError where a loaded model is not what training wrote down of its target.

    What follows a picture is left out: no suite shows one.
    """
    checkpoint = checkpoint_of(target, Path(target.path))
    if (known := checkpoint.canary) is None or len(known.token_ids) == known.pictures:
        return
    texts = len(known.token_ids) - known.pictures
    written = Canary(
        known.token_ids[:texts],
        known.log_probabilities[:texts],
        rounded=known.rounded[:texts],
        rivals=tuple((name, rows[:texts]) for name, rows in known.rivals),
    )
    seen = make_canary(model, written.token_ids).log_probabilities
    check_canary(replace(checkpoint, canary=written), seen, target.dtype)


@contextmanager
def full_checkpoint(target: Target) -> Iterator[Path]:
    """A folder with the target's whole weights; that of a merged adapter goes afterwards."""
    if target.kind != "lora":
        yield Path(target.path)
        return
    with tempfile.TemporaryDirectory(prefix="smmd-bench-merged-") as folder:
        merged_model(target).save_pretrained(folder)
        for file in Path(target.base).iterdir():
            weights = "safetensors" in file.name
            if file.is_file() and not weights and not (Path(folder) / file.name).exists():
                shutil.copy2(file, folder)
        yield Path(folder)
