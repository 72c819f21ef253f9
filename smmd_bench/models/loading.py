"""Loading a checkpoint and its tokenizer from a local folder; safetensors only."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import torch

from ..errors import UserError, reason_of
from .lora_targets import target_modules
from .processor import reads_images
from .recipe import Recipe


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a checkpoint folder, with a padding token (end-of-sequence if it has none).

    Raises UserError if the folder holds no usable tokenizer.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"The checkpoint {folder} has no tokenizer that transformers can load "
            f"({reason_of(error)}): put its tokenizer.json and tokenizer_config.json there."
        ) from error
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(folder: Path, dtype: str) -> Any:
    """The causal language model of a checkpoint folder, in evaluation mode, on the CPU.

    One that reads pictures comes with its vision tower. Raises UserError if the weights are missing
    or not safetensors.
    """
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    auto = AutoModelForImageTextToText if reads_images(folder) else AutoModelForCausalLM
    try:
        model = auto.from_pretrained(folder, dtype=getattr(torch, dtype), use_safetensors=True)
    except (OSError, ValueError) as error:
        raise UserError(
            f"The checkpoint {folder} cannot be loaded ({reason_of(error)}): it needs config.json "
            "and safetensors weights of a causal language model."
        ) from error
    return model.eval()


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
    # transformers 5.19 calls Mllama's encoder layers by a name that it deprecates itself
    warnings.filterwarnings("ignore", "`hidden_state` is deprecated", FutureWarning)
