"""How a cell is fine-tuned and scored: the paper's recipe, and what a model card changes of it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass

from ..errors import UserError, quoted
from ..storage.strict_yaml import read_yaml
from .settings import Settings, spelled

TRAINING_VERSION = 3
"""A part of every train address. Raise it when the code of training, of the objective or of the
encoding of examples changes what a cell is trained to."""

_SCORING = {
    "save_minutes", "keep_epochs", "validation_examples", "test_examples", "probe_examples",
    "probe_vectors", "select_by",
}  # fmt: skip
"""Settings that change no weights."""
TUNABLE = (
    "learning_rate", "weight_decay", "warmup_ratio", "schedule", "batch_size", "epochs",
    "max_grad_norm", "lora_rank", "lora_alpha", "lora_dropout",
)  # fmt: skip
"""Settings that a loss can be tuned over: they change how it trains, not what it is asked."""
_SEPARATORS = re.compile(r"[\s,+]+")
_WORDS = {"true": True, "false": False, "none": None}

_LARGEST = 2**63 - 1
Count = Annotated[int, Field(gt=0, le=_LARGEST)]
Size = Annotated[int, Field(ge=0, le=_LARGEST)]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Recipe(Settings):
    """Training and scoring settings. Defaults are the paper's (App. C.3) where it gives them.

    What the paper leaves unsaid (LoRA alpha, dropout and targets, batch size, schedule after the
    warm-up, validation size) is chosen and listed in docs/recipes.md.
    """

    kind: ClassVar[str] = "recipe setting"

    method: Literal["lora", "full"] = "lora"
    epochs: Count = 5  # passes over the training examples; one checkpoint each
    learning_rate: Annotated[Number, Field(gt=0)] = 2e-4  # peak of the schedule
    weight_decay: Number = 0.01  # AdamW's
    warmup_ratio: Share = 0.03  # share of the steps with a linear warm-up
    schedule: Literal["linear", "cosine", "constant"] = "linear"  # after the warm-up
    batch_size: Count = 16  # examples an optimiser step
    micro_batch_size: Count = 16  # examples a forward pass; batch_size is a multiple
    max_grad_norm: Number = 1.0
    lora_rank: Count = 16
    lora_alpha: Size = 16  # scaling numerator
    lora_dropout: Share = 0.0  # on the adapter's input
    # or with commas
    lora_targets: str = "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj"
    train_examples: Count | None = None  # None: the paper's number
    validation_examples: Count | None = 500  # they select the best epoch
    test_examples: Count | None = None  # None: the paper's number
    select_by: str | None = None  # the metric that selects epochs; None: the task's
    # between states inside of an epoch, from which a killed one resumes
    save_minutes: Number = 15
    # every epoch's weights: another validation set needs no training
    keep_epochs: bool = False
    # longest example in tokens; longer ones are refused, never cut
    max_length: Count = 1024
    # smallest area a picture is scaled to; None: the checkpoint's
    min_pixels: Count | None = None
    # largest such area; only where a processor has these
    max_pixels: Count | None = None
    # prompts by the chat template, for instruction-tuned models
    chat_template: bool = False
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"  # of weights and activations
    # transformers' attention in training, as flash_attention_2
    attn_implementation: str = "auto"
    group_by_length: bool = True  # batches of examples of like length: less padding
    gradient_checkpointing: bool = False  # recompute activations to save memory
    compile: bool = False  # decoder layers by torch.compile, for long trainings
    numeric_rule: Literal["integer", "float"] = "integer"  # which tokens are numeric
    probe_examples: Size | None = None  # test examples with digit probes; None: all
    probe_vectors: Size = 500  # examples that keep full distributions over V_num

    @field_validator("*", mode="before")
    @classmethod
    def _read_text(cls, value: Any, info: ValidationInfo) -> Any:
        """The number, truth value or None that a text of the command line spells."""
        if isinstance(value, str):
            word = value.lower()
            if word in _WORDS:
                return _WORDS[word]
            if info.field_name == "lora_targets":
                targets = _SEPARATORS.split(value.strip())
                return " ".join(dict.fromkeys(targets))

            # Strict types take no text for a number, and YAML reads 1e3 as a text.
            with suppress(ValueError):
                value = float(value)
        return int(value) if isinstance(value, float) and value.is_integer() else value

    def changed(self, values: Mapping[str, Any]) -> Recipe:
        """This recipe with some settings replaced; raises UserError for a bad one. A batch that is
        no whole number of micro-batches makes these smaller, unless `values` say their size."""
        settings = checked_settings(values)
        recipe = dataclasses.replace(self, **settings)
        if "batch_size" not in settings or "micro_batch_size" in settings:
            return recipe
        sizes = range(1, recipe.micro_batch_size + 1)
        largest = max(size for size in sizes if recipe.batch_size % size == 0)
        return dataclasses.replace(recipe, micro_batch_size=largest)


def recipe_content(recipe: Recipe) -> dict[str, Any]:
    """Every setting, for a manifest; one that older runs lack only where it is set."""
    return _drop_defaults(vars(recipe), {"select_by": None, "compile": False})


def _drop_defaults(
    settings: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings without those that have these values."""
    changed = {}
    for name, value in settings.items():
        if name not in defaults or value != defaults[name]:
            changed[name] = value
    return changed


def training_settings(recipe: Recipe) -> dict[str, Any]:
    """The settings that can change weights: part of the train address."""
    settings = {
        key: value for key, value in vars(recipe).items() if key not in _SCORING
    }
    # addresses are those of before there was a choice
    return _drop_defaults(settings, {"attn_implementation": "auto", "compile": False})


def paper_recipe(task_name: str) -> Recipe:
    """The paper's recipe for a task: 15 epochs for Arithmetic and Clock-Time, 5 for the others."""
    text = (files("smmd_bench") / "models" / "paper.yaml").read_text(encoding="utf-8")
    return Recipe().changed(read_yaml(text)["tasks"].get(task_name, {}))


def checked_settings(values: Any) -> dict[str, Any]:
    """Recipe settings, each as the type of its field; raises UserError for a bad one."""
    if not isinstance(values, Mapping):
        raise UserError(
            f"recipe must be a mapping such as {{epochs: 3}}, not {quoted(values)}."
        )
    recipe = Recipe(**{spelled(name): value for name, value in values.items()})
    # Only what was given: the rest stays the card's.
    return {name: getattr(recipe, name) for name in map(spelled, values)}
