"""What is measured: every setting of `smmd-bench overhead`, checked, and the shape of a model."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import yaml
from pydantic import Field
from pydantic.dataclasses import dataclass

from ..contracts import NumericVocabulary
from ..errors import UserError, did_you_mean, reason_of
from ..models.recipe import Recipe
from ..models.settings import Settings
from ..storage.addresses import folder_name

STOCK = "transformers.Trainer"
"""The row of cross-entropy in the stock Trainer; no loss can have a name with a dot."""
CE = "ce"
"""The row of cross-entropy here, to which the others are compared."""


Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True)
class OverheadSettings(Settings):
    """One measurement; raises UserError for a value that makes no sense.

    geometry, config: a name, and the transformers configuration. losses: canonical spec -> version
    (with the digest of a source that is not first-party), `ce` first. supervised: the share of
    every row, at its end, that has labels. numeric: the share of these whose label is one of the
    `numeric_tokens` (N). threads: of a CPU; None: torch's own.
    """

    kind: ClassVar[str] = "flag"

    geometry: str
    config: Mapping[str, Any]
    losses: Mapping[str, Any]
    numeric_tokens: Annotated[int, Field(ge=2)]
    device: Literal["cpu", "cuda"]
    steps: Count = 120
    drop: Annotated[int, Field(ge=0)] = 20
    repeats: Count = 3
    batch_size: Count = 4
    length: Annotated[int, Field(ge=2)] = 256
    supervised: Share = 0.25
    numeric: Share = 1.0
    method: Literal["lora", "full"] = "lora"
    dtype: Literal["float32", "bfloat16"] = "float32"
    threads: Count | None = None
    seed: Annotated[int, Field(ge=0)] = 0

    def __post_init__(self) -> None:
        if self.drop >= self.steps:
            raise UserError(
                f"--drop {self.drop} leaves none of {self.steps} steps: give a smaller --drop or "
                "more --steps."
            )
        if self.numeric_tokens >= self.config["vocab_size"]:
            raise UserError(
                f"--numeric-tokens {self.numeric_tokens}: must be below the "
                f"{self.config['vocab_size']} tokens of the geometry {self.geometry}."
            )

    @classmethod
    def spell(cls, name: str) -> str:
        """The flag of a setting."""
        return f"--{name.replace('_', '-')}"

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows of the table: the stock Trainer, then the losses, `ce` first."""
        return (STOCK, *self.losses)

    @property
    def supervised_tokens(self) -> int:
        """Of each row; its first token is nobody's prediction."""
        return min(max(1, round(self.length * self.supervised)), self.length - 1)

    @property
    def recipe(self) -> Recipe:
        """The paper's recipe with this method, dtype and batch."""
        return Recipe(
            method=self.method,
            dtype=self.dtype,
            batch_size=self.batch_size,
            micro_batch_size=self.batch_size,
            max_length=self.length,
        )

    @property
    def folder(self) -> Path:
        """The default output folder; its name follows from the settings alone."""
        words = ["overhead", self.geometry, self.device, *(s for s in self.losses if s != CE)]
        return Path("runs") / folder_name(words, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return asdict(self)


class Geometry(NamedTuple):
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


def synthetic_vocabulary(vocab_size: int, numeric_tokens: int) -> NumericVocabulary:
    """N tokens with the values 0..N-1, spread over a vocabulary of `vocab_size` tokens."""
    import torch

    ids = torch.linspace(0, vocab_size - 1, numeric_tokens, dtype=torch.float64).long()  # [N]
    return NumericVocabulary(ids, torch.arange(numeric_tokens, dtype=torch.float64), "synthetic")
