"""How a cell is fine-tuned and scored: the paper's recipe, and what a model card changes of it."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from ..errors import UserError, did_you_mean

_KINDS = {int: "an integer", float: "a finite number", bool: "true or false", str: "text"}
_POSITIVE = {
    "epochs",
    "batch_size",
    "micro_batch_size",
    "learning_rate",
    "lora_rank",
    "train_examples",
    "validation_examples",
    "test_examples",
    "max_length",
    "min_pixels",
    "max_pixels",
}
_SHARES = {"warmup_ratio", "lora_dropout"}


def _option(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


TRAINING_VERSION = 1
"""A part of every train address. Raise it when the code of training, of the objective or of the
encoding of examples changes what a cell is trained to."""


@dataclass(frozen=True)
class Recipe:
    """Training and scoring settings. Defaults are the paper's (App. C.3) where it gives them.

    What the paper leaves unsaid (LoRA alpha, dropout and targets, batch size, schedule after the
    warm-up, validation size) is chosen and listed in docs/recipes.md.
    """

    method: Literal["lora", "full"] = _option("lora", "LoRA adapters or full fine-tuning")
    epochs: int = _option(5, "passes over the training examples; one checkpoint each")
    learning_rate: float = _option(2e-4, "peak of the schedule")
    weight_decay: float = _option(0.01, "AdamW's")
    warmup_ratio: float = _option(0.03, "share of the steps with a linear warm-up")
    schedule: Literal["linear", "cosine", "constant"] = _option("linear", "after the warm-up")
    batch_size: int = _option(16, "examples an optimiser step")
    micro_batch_size: int = _option(16, "examples a forward pass; batch_size is a multiple")
    max_grad_norm: float = _option(1.0, "gradient clipping")
    lora_rank: int = _option(16, "rank r")
    lora_alpha: int = _option(16, "scaling numerator")
    lora_dropout: float = _option(0.0, "dropout on the adapter's input")
    lora_targets: str = _option(
        "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj", "modules with an adapter"
    )
    train_examples: int | None = _option(None, "none: the paper's number")
    validation_examples: int | None = _option(500, "examples that select the best epoch")
    test_examples: int | None = _option(None, "none: the paper's number")
    keep_epochs: bool = _option(
        False, "keep every epoch's weights, so that another validation set needs no training"
    )
    max_length: int = _option(1024, "longest example in tokens; longer ones are refused, never cut")
    min_pixels: int | None = _option(
        None, "smallest area that a picture is scaled to; none: the checkpoint's own"
    )
    max_pixels: int | None = _option(None, "largest such area; only where a processor has these")
    chat_template: bool = _option(
        False, "write prompts through the tokenizer's chat template, for instruction-tuned models"
    )
    dtype: Literal["float32", "bfloat16"] = _option("float32", "of weights and activations")
    group_by_length: bool = _option(False, "batches of examples of like length: less padding")
    gradient_checkpointing: bool = _option(False, "recompute activations to save memory")
    numeric_rule: Literal["integer", "float"] = _option("integer", "which tokens are numeric")
    probe_examples: int | None = _option(None, "test examples with digit probes; none: all")
    probe_vectors: int = _option(500, "examples that keep full distributions over V_num")

    def changed(self, values: Mapping[str, Any]) -> Recipe:
        """This recipe with some settings replaced; raises UserError for a bad one."""
        return dataclasses.replace(self, **checked_settings(values))


def training_settings(recipe: Recipe) -> dict[str, Any]:
    """The settings that can change weights: part of the train address."""
    scoring = {"keep_epochs", "validation_examples", "test_examples"}
    scoring |= {"probe_examples", "probe_vectors"}
    return {k: v for k, v in dataclasses.asdict(recipe).items() if k not in scoring}


def paper_recipe(task_name: str) -> Recipe:
    """The paper's recipe for a task: 15 epochs for Arithmetic and Clock-Time, 5 for the others."""
    text = (files("smmd_bench") / "models" / "paper.yaml").read_text(encoding="utf-8")
    card = yaml.safe_load(text)
    changes = {**card.get("recipe", {}), **card.get("tasks", {}).get(task_name, {})}
    return Recipe().changed(changes)


def checked_settings(values: Any) -> dict[str, Any]:
    """Recipe settings, each as the type of its field; raises UserError for a bad one."""
    if not isinstance(values, Mapping):
        raise UserError(f"recipe must be a mapping such as {{epochs: 3}}, not {values!r}.")
    return {str(name): _checked(str(name), value) for name, value in values.items()}


@cache
def _hints() -> Mapping[str, Any]:
    return typing.get_type_hints(Recipe)


def _checked(name: str, value: Any) -> Any:
    hints = _hints()
    if name not in hints:
        raise UserError(f"Unknown recipe setting '{name}': {did_you_mean(name, hints)}")
    hint = hints[name]
    if typing.get_origin(hint) is Literal:
        if value not in typing.get_args(hint):
            choices = ", ".join(typing.get_args(hint))
            raise UserError(f"Recipe setting {name}={value}: expected one of {choices}.")
        return value
    optional = type(None) in typing.get_args(hint)
    if value is None or value == "none":
        if optional:
            return None
        raise UserError(f"Recipe setting {name} needs a value.")
    kind = next((t for t in typing.get_args(hint) if t is not type(None)), hint)
    try:
        result = _read(kind, value)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"Recipe setting {name}={value}: expected {_KINDS[kind]}.") from None
    if kind in (int, float) and result < 0:
        raise UserError(f"Recipe setting {name}={value}: must not be negative.")
    if name in _POSITIVE and result == 0:
        raise UserError(f"Recipe setting {name}=0: must be > 0.")
    if name in _SHARES and result > 1:
        raise UserError(f"Recipe setting {name}={value}: must be from 0 to 1.")
    return result


def _read(kind: type, value: Any) -> Any:
    """The value as a `kind`; raises TypeError, ValueError or OverflowError if it is none."""
    if kind is bool and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    if kind is str and isinstance(value, str):
        return value
    if kind in (bool, str) or isinstance(value, bool):
        raise TypeError(value)
    number = float(value)
    if not math.isfinite(number) or (kind is int and number != int(number)):
        raise ValueError(value)
    return kind(number)
