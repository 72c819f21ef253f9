"""What is measured: every setting of `smmd-bench overhead`, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import UserError
from ..models.recipe import Recipe
from ..storage.addresses import folder_name

STOCK = "transformers.Trainer"
"""The row of cross-entropy in the stock Trainer; no loss can have a name with a dot."""
CE = "ce"
"""The row of cross-entropy here, to which the others are compared."""


@dataclass(frozen=True)
class OverheadSettings:
    """One measurement; raises UserError for a value that makes no sense.

    geometry, config: a name, and the transformers configuration. losses: canonical spec -> version
    (with the digest of a source that is not first-party), `ce` first. supervised: the share of
    every row, at its end, that has labels. numeric: the share of these whose label is one of the
    `numeric_tokens` (N). threads: of a CPU; None: torch's own.
    """

    geometry: str
    config: Mapping[str, Any]
    losses: Mapping[str, Any]
    numeric_tokens: int
    device: Literal["cpu", "cuda"]
    steps: int = 120
    drop: int = 20
    repeats: int = 3
    batch_size: int = 4
    length: int = 256
    supervised: float = 0.25
    numeric: float = 1.0
    method: Literal["lora", "full"] = "lora"
    dtype: Literal["float32", "bfloat16"] = "float32"
    interleave: Literal["steps", "runs"] = "steps"
    threads: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"steps": 1, "repeats": 1, "batch_size": 1, "length": 2, "threads": 1}
        for name, low in {**least, "drop": 0, "seed": 0, "numeric_tokens": 2}.items():
            value = getattr(self, name)
            if value is not None and value < low:
                raise UserError(f"{_flag(name)} {value}: must be {low} or more.")
        if self.drop >= self.steps:
            raise UserError(
                f"--drop {self.drop} leaves none of {self.steps} steps: give a smaller --drop or "
                "more --steps."
            )
        for name in ("supervised", "numeric"):
            if not 0 < getattr(self, name) <= 1:
                raise UserError(
                    f"{_flag(name)} {getattr(self, name):g}: must be a share above 0, at most 1."
                )
        if self.numeric_tokens >= self.config["vocab_size"]:
            raise UserError(
                f"--numeric-tokens {self.numeric_tokens}: must be below the "
                f"{self.config['vocab_size']} tokens of the geometry {self.geometry}."
            )

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
        return {**asdict(self), "config": dict(self.config), "losses": dict(self.losses)}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
