"""A checkpoint that a call evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Target:
    """A checkpoint: what it is of, where its weights are, and what identifies them.

    task: what it was trained on; None for the base. cell: the cell's address; None for weights that
    are no cell's. base: the folder of the model it was trained from, which has the tokenizer.
    canary: what training wrote down of it, if anything. of: the model and the task, as far as the
    run has several, which its label then names.
    """

    model: str
    model_label: str
    params: int
    task: str | None
    loss: str
    seed: int
    cell: str | None
    epoch: int | None
    base: str
    kind: str
    path: str
    dtype: str
    identity: Mapping[str, Any]
    canary: Mapping[str, Any] | None = None
    of: str = ""

    @property
    def label(self) -> str:
        """How people read of it: `ce seed 0`, and `Qwen2.5-0.5B gsm8k ce seed 0` among others."""
        words = [self.of, self.loss, "" if self.cell is None else f"seed {self.seed}"]
        return " ".join(word for word in words if word)

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON takes it."""
        return asdict(self)
