"""A target's weights in memory, an adapter merged into its base once, and on disk where an engine
needs them there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..training.models import load_model
from .target import Target


def merged_model(target: Target) -> Any:
    """The transformers model of a target on the CPU, in its dtype, without any adapter left."""
    if target.kind != "lora":
        return load_model(Path(target.path), target.dtype)
    from peft import PeftModel

    model = load_model(Path(target.base), target.dtype)
    return PeftModel.from_pretrained(model, target.path).merge_and_unload(safe_merge=True).eval()


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
