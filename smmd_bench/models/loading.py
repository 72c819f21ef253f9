"""The weights of a checkpoint from a local folder, as they are, with an adapter, or merged with it.

Safetensors only.
"""

import os
import re
import shutil
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from ..errors import UserError, did_you_mean, reason_of
from .cards import ModelCard
from .recipe import Recipe
from .tokenizers import reads_images

_MASKS = re.compile(r"\.(attn|attention)\.(bias|masked_bias|causal_mask)$")
"""Causal masks, which GPT-2, GPT-Neo, GPT-J and CodeGen once saved beside their weights."""


def load_model(folder: Path, dtype: str, attention: str = "auto") -> Any:
    """The causal language model of a checkpoint folder, in evaluation mode, on the CPU.

    attention: transformers' `attn_implementation` (auto: its choice). One that reads pictures comes
    with its vision tower. Raises UserError if the weights are not safetensors, or are not exactly
    those that the config describes, and for an attention that is not installed.
    """
    # float32 is float32, also in a GPU's convolutions, which torch makes in TF32 by default.
    torch.backends.cudnn.allow_tf32 = False
    model = _load(folder, attention, dtype=getattr(torch, dtype)).eval()
    # transformers leaves a stored head beside the tie, and vLLM drops it.
    if _has_own_head(model):
        raise UserError(
            f"The checkpoint {folder} says tie_word_embeddings in its config.json, and holds an "
            "output head that differs from its embedding: set tie_word_embeddings to false there."
        )
    return model


def require_all_weights(folder: Path, attention: str = "auto") -> None:
    """Raise UserError as `load_model` does, where possible by the headers of the files alone."""
    if _has_own_head(_load(folder, attention, device_map="meta")):  # its values tell
        load_model(folder, "bfloat16")


def _has_own_head(model: Any) -> bool:
    """Whether the head of a model is not the embedding, which its config ties it to."""
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    ties = getattr(model.config, "tie_word_embeddings", False) and head is not None
    return bool(ties and head.weight is not embedding.weight)


def _load(folder: Path, attention: str, **how: Any) -> Any:
    auto = _auto_model(folder)
    quiet_libraries()
    if attention != "auto":
        how["attn_implementation"] = attention

    # What does not fit is reported, not raised, so that one sentence names all of it.
    how |= {
        "use_safetensors": True,
        "ignore_mismatched_sizes": True,
        "output_loading_info": True,
    }
    try:
        model, report = auto.from_pretrained(folder, **how)
    except (OSError, ValueError, ImportError) as error:
        raise UserError(
            f"The checkpoint {folder} cannot be loaded ({reason_of(error)}): it needs config.json "
            "and safetensors weights of a causal language model."
        ) from error

    by_fault = {
        "missing": sorted(report["missing_keys"]),
        "unexpected": sorted(
            k for k in report["unexpected_keys"] if not _MASKS.search(k)
        ),
        "of another shape": sorted(str(key[0]) for key in report["mismatched_keys"]),
    }
    faults = []
    for fault, keys in by_fault.items():
        if keys:
            faults.append(f"{len(keys)} {fault}: {', '.join(keys[:3])}")
    if faults:
        raise UserError(
            f"The weights of {folder} do not fit its config.json ({'; '.join(faults)}): save the "
            "whole model there again with save_pretrained, or correct config.json."
        )
    return model


def _auto_model(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    # As a causal language model, one that reads pictures would lose its vision tower.
    return AutoModelForImageTextToText if reads_images(folder) else AutoModelForCausalLM


def add_adapter(model: Any, recipe: Recipe) -> Any:
    """Wrap the model (of one that reads pictures, the language model) with a fresh LoRA adapter."""
    from peft import LoraConfig, get_peft_model

    vision = getattr(model.config, "vision_config", None) is not None
    config = LoraConfig(
        r=recipe.lora_rank,
        lora_alpha=recipe.lora_alpha,
        lora_dropout=recipe.lora_dropout,
        target_modules=target_modules(recipe.lora_targets.split(), vision=vision),
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config)


def load_trained(folder: Path, *, base: Path, recipe: Recipe) -> Any:
    """What a training by this recipe has saved in `folder`: the model, or base and adapter."""
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

    # `load_merged` unties what such an adapter is on; PEFT corrects fan_in_fan_out itself.
    warnings.filterwarnings(
        "ignore", r"Model \w+ `tie_word_embeddings=True`", UserWarning
    )
    warnings.filterwarnings("ignore", "fan_in_fan_out is set to False", UserWarning)
    warnings.filterwarnings("ignore", "Setting `save_embedding_layers`", UserWarning)
    # transformers 5.19 calls Mllama's encoder layers by a name that it deprecates itself
    warnings.filterwarnings("ignore", "`hidden_state` is deprecated", FutureWarning)


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
    language = [layer for layer in layers if "language_model" in layer or not vision]
    names = {layer.rpartition(".")[2] for layer in language}

    for target in targets.split() or [""]:
        modules = target_modules([target], vision=vision)
        if not any(_matches(layer, modules) for layer in layers):
            raise UserError(
                f"lora_targets asks for '{target}', and no layer of {card.name} is called so: "
                f"{did_you_mean(target, names)}"
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
    """The layers that can have an adapter, with the sum of their inputs and outputs."""
    from transformers import AutoConfig
    from transformers.pytorch_utils import Conv1D

    kinds = (torch.nn.Linear, torch.nn.Embedding, Conv1D)  # GPT-2's layers are Conv1D
    try:
        with torch.device("meta"):  # only the shapes count
            config = AutoConfig.from_pretrained(folder)
            model = _auto_model(folder).from_config(config)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"The checkpoint {name} cannot be loaded ({reason_of(error)}): it needs the "
            "config.json of a causal language model."
        ) from error

    modules = model.named_modules()
    return {layer: sum(m.weight.shape) for layer, m in modules if isinstance(m, kinds)}


def load_merged(base: Path, adapter: Path, dtype: str) -> Any:
    """The base with the adapter in its weights, on the CPU, without any adapter left.

    An embedding that shares its weights with the output head has them for itself afterwards where
    the adapter is on one of the two.
    """
    from peft import PeftModel

    model = PeftModel.from_pretrained(load_model(base, dtype), adapter).eval()
    _untie(model.get_base_model())
    return model.merge_and_unload(safe_merge=True).eval()


def _untie(model: Any) -> None:
    """Give the output head weights of its own where it, or the embedding, has an adapter."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    adapted = any(isinstance(layer, BaseTunerLayer) for layer in (head, embedding))
    # Merged into shared weights, the adapter of one would change the other, too.
    if adapted and head.weight is embedding.weight:
        layer = head.get_base_layer() if isinstance(head, BaseTunerLayer) else head
        layer.weight = torch.nn.Parameter(layer.weight.detach().clone())
        model.config.tie_word_embeddings = False


def save_merged(base: Path, adapter: Path, dtype: str, folder: Path) -> None:
    """Write the merged model to a folder, with the base's tokenizer, processor and other files, but
    for its card: the recipe and label there are those of the base."""
    load_merged(base, adapter, dtype).save_pretrained(folder)
    for file in base.iterdir():
        # An index of the base would name files that are not there.
        of_base = file.name.startswith(("card.", "pretraining."))
        of_base |= "safetensors" in file.name
        if file.is_file() and not of_base and not (folder / file.name).exists():
            shutil.copy2(file, folder)
