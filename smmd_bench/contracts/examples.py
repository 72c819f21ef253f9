"""Examples of a task, and answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Literal

Split = Literal["train", "validation", "test"]


class Modality(StrEnum):
    """What a prompt is made of."""

    TEXT = "text"
    VISION = "vision"


@dataclass(frozen=True, slots=True)
class Answer:
    """A parsed number: `value` is exact."""

    value: Fraction

    def __float__(self) -> float:
        return float(self.value)


@dataclass(frozen=True, slots=True)
class Example:
    """One prompt with its target text.

    `target` is what the model is trained to write after `prompt` (without the end-of-sequence
    token), `answer` what `Task.parse(target)` must give. `attributes` are columns for analysis,
    such as the number of operations. `answer_start` is where the final answer begins in `target`,
    in characters: a target with a rationale before its answer must say so (0: there is none).
    """

    uid: str
    prompt: str
    target: str
    answer: Answer | None
    images: tuple[Path, ...] = ()
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)
    answer_start: int = 0
