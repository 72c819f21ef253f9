"""How a cell is fine-tuned and scored: the paper's recipe, and what a model card changes of it."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

import yaml

from .errors import UserError, did_you_mean


def _option(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


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
    max_length: int = _option(1024, "longest example in tokens; longer ones are refused, never cut")
    dtype: Literal["float32", "bfloat16"] = _option("float32", "of weights and activations")
    group_by_length: bool = _option(False, "batches of examples of like length: less padding")
    gradient_checkpointing: bool = _option(False, "recompute activations to save memory")
    numeric_rule: Literal["integer", "float"] = _option("integer", "which tokens are numeric")
    probe_examples: int | None = _option(None, "test examples with digit probes; none: all")
    probe_vectors: int = _option(500, "examples that keep full distributions over V_num")

    def changed(self, values: Mapping[str, Any]) -> Recipe:
        """This recipe with some settings replaced; raises UserError for a bad one."""
        return dataclasses.replace(self, **{k: _checked(k, v) for k, v in values.items()})


def training_settings(recipe: Recipe) -> dict[str, Any]:
    """The settings that can change weights: part of the train address."""
    scoring = {"validation_examples", "test_examples", "probe_examples", "probe_vectors"}
    return {k: v for k, v in dataclasses.asdict(recipe).items() if k not in scoring}


def paper_recipe(task_name: str) -> Recipe:
    """The paper's recipe for a task: 15 epochs for Arithmetic and Clock-Time, 5 for the others."""
    text = (files("smmd_bench") / "models" / "paper.yaml").read_text(encoding="utf-8")
    card = yaml.safe_load(text)
    changes = {**card.get("recipe", {}), **card.get("tasks", {}).get(task_name, {})}
    return Recipe().changed(changes)


def describe() -> list[tuple[str, str, Any, str]]:
    """(name, type, default, help) of every setting."""
    hints = typing.get_type_hints(Recipe)
    return [
        (
            f.name,
            str(getattr(hints[f.name], "__name__", hints[f.name])),
            f.default,
            f.metadata["help"],
        )
        for f in dataclasses.fields(Recipe)
    ]


def _checked(name: str, value: Any) -> Any:
    hints = typing.get_type_hints(Recipe)
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
        if kind is bool:
            return {"true": True, "false": False}[str(value).lower()]
        if kind is int and float(value) != int(float(value)):
            raise ValueError(value)
        result = int(float(value)) if kind is int else kind(value)
    except (ValueError, KeyError):
        raise UserError(f"Recipe setting {name}={value}: expected {kind.__name__}.") from None
    if kind in (int, float) and result < 0:
        raise UserError(f"Recipe setting {name}={value}: must not be negative.")
    positive = {
        "epochs",
        "batch_size",
        "micro_batch_size",
        "learning_rate",
        "lora_rank",
        "train_examples",
        "validation_examples",
        "test_examples",
        "max_length",
    }
    if name in positive and result == 0:
        raise UserError(f"Recipe setting {name}=0: must be > 0.")
    return result


def dataclass_dict(recipe: Recipe) -> dict[str, Any]:
    """The settings as plain data."""
    return dataclasses.asdict(recipe)
