"""An adapter merged into its base: a whole model, in memory or as a checkpoint folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .loading import load_model
from .tokenizers import load_tokenizer

_TEXT = "What is 12 + 345?\nAnswer: 357"
_WITHIN = {"float32": 1e-4}
_WITHIN_ROUNDED = 0.02
"""The divergence that rounding of merged weights may cause on `_TEXT`, in nats a token, by dtype;
0.0002 was seen in bfloat16, 1e-8 in float32."""


def load_merged(base: Path, adapter: Path, dtype: str) -> Any:
    """The base with the adapter in its weights, on the CPU, without any adapter left.

    An embedding that shares its weights with the output head has them for itself afterwards where
    the adapter is on one of the two. Raises RuntimeError if the merged model gives other
    log-probabilities than the base with its adapter.
    """
    from peft import PeftModel

    model = PeftModel.from_pretrained(load_model(base, dtype), adapter).eval()
    ids = torch.tensor([load_tokenizer(base).encode(_TEXT)])  # [1, T]
    wanted = _log_probabilities(model, ids)
    _untie(model.get_base_model())
    model = model.merge_and_unload(safe_merge=True).eval()
    found, most = _log_probabilities(model, ids), _WITHIN.get(dtype, _WITHIN_ROUNDED)
    off = float((wanted.exp() * (wanted - found)).sum(-1).mean())
    if not off <= most:
        raise RuntimeError(
            f"The adapter {adapter} merged into {base} is another model: its next tokens diverge "
            f"by {off:.2g} nats, where rounding explains {most:g}."
        )
    return model


def _log_probabilities(model: Any, ids: Tensor) -> Tensor:
    """Of every token that follows each token of a text: [1, T, V], float32."""
    with torch.no_grad():
        logits: Tensor = model(input_ids=ids, use_cache=False).logits
    return logits.float().log_softmax(-1)


def _untie(model: Any) -> None:
    """Give the output head weights of its own where it, or the embedding, has an adapter."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    adapted = any(isinstance(layer, BaseTunerLayer) for layer in (head, embedding))
    if adapted and head.weight is embedding.weight:
        layer = head.get_base_layer() if isinstance(head, BaseTunerLayer) else head
        layer.weight = torch.nn.Parameter(layer.weight.detach().clone())
        model.config.tie_word_embeddings = False


def save_merged(base: Path, adapter: Path, dtype: str, folder: Path) -> None:
    """Write the merged model to a folder, with the base's tokenizer, processor and other files."""
    load_merged(base, adapter, dtype).save_pretrained(folder)
    for file in base.iterdir():
        weights = "safetensors" in file.name
        if file.is_file() and not weights and not (folder / file.name).exists():
            shutil.copy2(file, folder)
