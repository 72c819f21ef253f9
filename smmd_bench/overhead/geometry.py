"""The shape of a model, by name or from a config.json, and a random model of that shape."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from ..errors import UserError, did_you_mean, reason_of
from ..models.recipe import Recipe


@dataclass(frozen=True)
class Geometry:
    """A transformers configuration of a causal language model, and N of its tokenizer.

    numeric_tokens: None where it is not known, as for a config.json.
    """

    name: str
    config: Mapping[str, Any]
    numeric_tokens: int | None


@cache
def named_geometries() -> Mapping[str, Geometry]:
    """The geometries of `geometries.yaml`, by name."""
    text = (files("smmd_bench.overhead") / "geometries.yaml").read_text(encoding="utf-8")
    return {
        name: Geometry(name, entry["config"], entry["numeric_tokens"])
        for name, entry in yaml.safe_load(text).items()
    }


def find_geometry(text: str) -> Geometry:
    """The geometry of that name, or of a config.json, or of the folder of a checkpoint.

    Raises UserError if there is none, or the file is not a configuration of transformers.
    """
    if text in named_geometries():
        return named_geometries()[text]
    path = Path(text).expanduser()
    if not path.exists():
        raise UserError(
            f"Unknown geometry '{text}': {did_you_mean(text, named_geometries())} (Or give the "
            "path of a config.json or of a checkpoint folder.)"
        )
    file = path / "config.json" if path.is_dir() else path
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"The geometry {file} cannot be read ({error}): give a config.json of transformers."
        ) from error
    if not isinstance(config, dict) or not {"model_type", "vocab_size"} <= set(config):
        raise UserError(
            f"The geometry {file} has no model_type and vocab_size: give the config.json of a "
            "causal language model."
        )
    return Geometry(file.absolute().parent.name, config, None)


def build_model(config: Mapping[str, Any], recipe: Recipe, device: str) -> Any:
    """A model with random weights on `device`, with the recipe's adapter where it has one.

    As in the train stage, full fine-tuning in bfloat16 keeps float32 weights.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from ..models.loading import add_adapter

    dtype = "float32" if recipe.method == "full" else recipe.dtype
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(**config), dtype=getattr(torch, dtype)
        )
        return add_adapter(model, recipe) if recipe.method == "lora" else model


def check_geometry(name: str, config: Mapping[str, Any], recipe: Recipe) -> None:
    """Build the model without memory for its weights.

    Raises UserError if transformers or PEFT cannot build it.
    """
    try:
        build_model(config, recipe, "meta")
    except Exception as error:
        raise UserError(
            f"The geometry {name} cannot be built with method {recipe.method} "
            f"({reason_of(error).rstrip(':')}): give the config.json of a causal language model "
            "that the installed transformers knows."
        ) from error
