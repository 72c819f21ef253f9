"""Loading the weights of a checkpoint from a local folder; safetensors only."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

import torch

from ..errors import UserError, reason_of
from .lora_targets import target_modules
from .processor import reads_images
from .recipe import Recipe

_NAMED = 3
_MASKS = re.compile(r"\.(attn|attention)\.(bias|masked_bias|causal_mask)$")
"""Causal masks, which GPT-2, GPT-Neo, GPT-J and CodeGen once saved beside their weights."""


def load_model(folder: Path, dtype: str) -> Any:
    """The causal language model of a checkpoint folder, in evaluation mode, on the CPU.

    One that reads pictures comes with its vision tower. Raises UserError if the weights are not
    safetensors, or are not exactly those that the config describes.
    """
    model = _load(folder, dtype=getattr(torch, dtype)).eval()
    if _has_own_head(model):
        raise UserError(
            f"The checkpoint {folder} says tie_word_embeddings in its config.json, and holds an "
            "output head that differs from its embedding: set tie_word_embeddings to false there, "
            "or take the head out of the file."
        )
    return model


def require_all_weights(folder: Path) -> None:
    """Raise UserError as `load_model` does, where possible by the headers of the files alone."""
    if _has_own_head(_load(folder, device_map="meta")):  # in the file: only its values tell
        load_model(folder, "bfloat16")


def _has_own_head(model: Any) -> bool:
    """Whether the head of a model is not the embedding, which its config ties it to."""
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    ties = getattr(model.config, "tie_word_embeddings", False) and head is not None
    return bool(ties and head.weight is not embedding.weight)


def _load(folder: Path, **how: Any) -> Any:
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    auto = AutoModelForImageTextToText if reads_images(folder) else AutoModelForCausalLM
    quiet_libraries()
    how |= {"use_safetensors": True, "ignore_mismatched_sizes": True, "output_loading_info": True}
    try:
        model, report = auto.from_pretrained(folder, **how)
    except (OSError, ValueError) as error:
        raise UserError(
            f"The checkpoint {folder} cannot be loaded ({reason_of(error)}): it needs config.json "
            "and safetensors weights of a causal language model."
        ) from error
    found = {
        "missing": sorted(report["missing_keys"]),
        "unexpected": sorted(k for k in report["unexpected_keys"] if not _MASKS.search(k)),
        "of another shape": sorted(str(key[0]) for key in report["mismatched_keys"]),
    }
    if faults := [
        f"{len(names)} {what}: {_listed(names)}" for what, names in found.items() if names
    ]:
        raise UserError(
            f"The weights of {folder} do not fit its config.json ({'; '.join(faults)}): save the "
            "whole model there again with save_pretrained, or correct config.json."
        )
    return model


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")


def add_adapter(model: Any, recipe: Recipe) -> Any:
    """Wrap the model with a fresh LoRA adapter by the recipe; of one that reads pictures, the
    language model alone."""
    from peft import LoraConfig, get_peft_model

    vision = getattr(model.config, "vision_config", None) is not None
    return get_peft_model(
        model,
        LoraConfig(
            r=recipe.lora_rank,
            lora_alpha=recipe.lora_alpha,
            lora_dropout=recipe.lora_dropout,
            target_modules=target_modules(recipe.lora_targets.split(), vision=vision),
            task_type="CAUSAL_LM",
        ),
    )


def load_trained(folder: Path, *, base: Path, recipe: Recipe) -> Any:
    """What a training by this recipe has saved in `folder`: the model, or the base with the
    adapter."""
    if recipe.method == "full":
        return load_model(folder, "float32")
    from peft import PeftModel

    return PeftModel.from_pretrained(load_model(base, recipe.dtype), folder).eval()


def quiet_libraries() -> None:
    """Hub offline, no progress bars of the libraries: ours says what is going on."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    # `load_merged` unties what such an adapter is on, and compares; PEFT corrects fan_in_fan_out
    warnings.filterwarnings("ignore", r"Model \w+ `tie_word_embeddings=True`", UserWarning)
    warnings.filterwarnings("ignore", "fan_in_fan_out is set to False", UserWarning)
    warnings.filterwarnings("ignore", "Setting `save_embedding_layers`", UserWarning)
    # transformers 5.19 calls Mllama's encoder layers by a name that it deprecates itself
    warnings.filterwarnings("ignore", "`hidden_state` is deprecated", FutureWarning)
