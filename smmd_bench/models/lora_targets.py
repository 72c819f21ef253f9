"""Which modules of a model a LoRA adapter goes on, and whether each target names one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..errors import UserError, did_you_mean, reason_of
from .processor import reads_images

if TYPE_CHECKING:
    from .cards import ModelCard


def target_modules(targets: Iterable[str], *, vision: bool) -> list[str] | str:
    """What PEFT takes for these names; of a model that reads pictures, the language model alone."""
    names = list(targets)
    if not vision:
        return names
    return rf".*language_model.*\.({'|'.join(map(re.escape, names))})"  # a whole name


def require_lora_targets(card: ModelCard, targets: str) -> None:
    """Raise UserError for a target that names no layer of the model, with the nearest names."""
    vision = reads_images(card.folder)
    layers = _layers(card.folder, card.name)
    known = {
        layer.rpartition(".")[2] for layer in layers if "language_model" in layer or not vision
    }
    for target in targets.split() or [""]:
        if not any(_matches(layer, target_modules([target], vision=vision)) for layer in layers):
            raise UserError(
                f"lora_targets asks for '{target}', and no layer of {card.name} is called so: "
                f"{did_you_mean(target, known)}"
            )


def adapter_weights(card: ModelCard, targets: str, rank: int) -> int:
    """How many weights an adapter of that rank has on the layers that these targets name."""
    modules = target_modules(targets.split(), vision=reads_images(card.folder))
    layers = _layers(card.folder, card.name).items()
    return rank * sum(ends for layer, ends in layers if _matches(layer, modules))


def _matches(layer: str, modules: list[str] | str) -> bool:
    """As PEFT decides it."""
    if isinstance(modules, str):
        return re.fullmatch(modules, layer) is not None
    return any(layer == name or layer.endswith(f".{name}") for name in modules)


@cache
def _layers(folder: Path, name: str) -> dict[str, int]:
    """The layers that can have an adapter, with the sum of their inputs and outputs, from a model
    without its weights."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
    from transformers.pytorch_utils import Conv1D

    kinds = (torch.nn.Linear, torch.nn.Embedding, Conv1D)
    auto: Any = AutoModelForImageTextToText if reads_images(folder) else AutoModelForCausalLM
    try:
        with torch.device("meta"):
            model = auto.from_config(AutoConfig.from_pretrained(folder))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"The checkpoint {name} cannot be loaded ({reason_of(error)}): it needs the "
            "config.json of a causal language model."
        ) from error
    modules = model.named_modules()
    return {layer: sum(m.weight.shape) for layer, m in modules if isinstance(m, kinds)}
