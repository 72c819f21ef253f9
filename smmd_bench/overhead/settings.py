"""What is measured: every setting of `smmd-bench overhead`, checked, and the shape of a model."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field
from pydantic.dataclasses import dataclass

from ..errors import UserError, did_you_mean
from ..models.recipe import Recipe
from ..models.settings import Settings
from ..storage.addresses import folder_name
from ..storage.files import read_given_json
from ..storage.strict_yaml import read_yaml

STOCK = "transformers.Trainer"
"""The row of cross-entropy in the stock Trainer; no loss can have a name with a dot."""
CE = "ce"
"""The row of cross-entropy here, to which the others are compared."""


@dataclass(frozen=True)
class OverheadSettings(Settings):
    """One measurement; raises UserError for a value that makes no sense.

    geometry, config: a name, and the transformers configuration. losses: canonical spec -> version
    (with the digest of a source that is not first-party), `ce` first. The first quarter of the
    steps does not count. The last quarter of a row has labels, each a numeric token of N.
    """

    kind: ClassVar[str] = "flag"

    geometry: str
    config: Mapping[str, Any]
    losses: Mapping[str, Any]
    numeric_tokens: Annotated[int, Field(ge=2)]
    device: Literal["cpu", "cuda"]
    steps: Annotated[int, Field(ge=4)] = 120
    repeats: Annotated[int, Field(ge=1)] = 3
    batch_size: Annotated[int, Field(ge=1)] = 4
    length: Annotated[int, Field(ge=4)] = 256
    method: Literal["lora", "full"] = "lora"
    dtype: Literal["float32", "bfloat16"] = "float32"

    @classmethod
    def spell(cls, name: str) -> str:
        """Spell a setting as its flag."""
        return f"--{name.replace('_', '-')}"

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows of the table: the stock Trainer, then the losses, `ce` first."""
        return (STOCK, *self.losses)

    @property
    def recipe(self) -> Recipe:
        """The paper's recipe with this method, dtype and batch."""
        return Recipe(
            method=self.method, dtype=self.dtype, max_length=self.length,
            batch_size=self.batch_size, micro_batch_size=self.batch_size,
        )  # fmt: skip

    @property
    def folder(self) -> Path:
        """The default output folder; its name follows from the settings alone."""
        losses = [spec for spec in self.losses if spec != CE]
        words = ["overhead", self.geometry, self.device, *losses]
        return Path("runs") / folder_name(words, vars(self))


class Geometry(NamedTuple):
    """A configuration of transformers, and N of its tokenizer (None: not known)."""

    name: str
    config: Mapping[str, Any]
    numeric_tokens: int | None


@cache
def named_geometries() -> Mapping[str, Geometry]:
    """Read the geometries of `geometries.yaml`, by name."""
    text = (files("smmd_bench.overhead") / "geometries.yaml").read_text(
        encoding="utf-8"
    )
    return {name: Geometry(name, **entry) for name, entry in read_yaml(text).items()}


def find_geometry(text: str) -> Geometry:
    """Find the geometry of that name, of a config.json, or of the folder of a checkpoint."""
    if text in named_geometries():
        return named_geometries()[text]

    path = Path(text).expanduser()
    if not path.exists():
        raise UserError(
            f"Unknown geometry '{text}': {did_you_mean(text, named_geometries())} (Or give the "
            "path of a config.json or of a checkpoint folder.)"
        )

    # A folder may hold the config.json of a processor or a dataset instead.
    file = path / "config.json" if path.is_dir() else path
    config = read_given_json(file)
    if not {"model_type", "vocab_size"} <= set(config):
        raise UserError(
            f"The geometry {file} has no model_type and vocab_size: give the config.json of a "
            "causal language model."
        )
    return Geometry(file.absolute().parent.name, config, None)
