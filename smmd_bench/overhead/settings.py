"""What is measured: every setting of `smmd-bench overhead`, checked."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from ..errors import UserError
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
    interleave: Literal["steps", "runs"] = "steps"
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
