"""An adapter merged into its base: a whole model, in memory or as a checkpoint folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from .loading import load_model


def load_merged(base: Path, adapter: Path, dtype: str) -> Any:
    """The base with the adapter in its weights, on the CPU, without any adapter left."""
    from peft import PeftModel

    model = PeftModel.from_pretrained(load_model(base, dtype), adapter)
    return model.merge_and_unload(safe_merge=True).eval()


def save_merged(base: Path, adapter: Path, dtype: str, folder: Path) -> None:
    """Write the merged model to a folder, with the base's tokenizer, processor and other files."""
    load_merged(base, adapter, dtype).save_pretrained(folder)
    for file in base.iterdir():
        weights = "safetensors" in file.name
        if file.is_file() and not weights and not (folder / file.name).exists():
            shutil.copy2(file, folder)
