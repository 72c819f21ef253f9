"""A task in one file.

    smmd-bench train-eval --task doubling --losses ce,smmd --plugin examples/own_task.py

"Double 21.\\nAnswer: " -> "42", with numbers of a given length.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from smmd_bench.contracts import (
    Answer,
    ExactMatch,
    Example,
    MeanAbsoluteError,
    Metric,
    Modality,
    ParseFailureRate,
    RSquared,
    Split,
    parameter,
    parse_number,
    plain_text,
    positive,
)


@dataclass(frozen=True)
class Doubling:
    """Twice a number: an example of a task of one's own."""

    name: ClassVar[str] = "doubling"
    version: ClassVar[int] = 1
    modality: ClassVar[Modality] = Modality.TEXT
    max_new_tokens: ClassVar[int] = 16
    licence: ClassVar[str] = "made here"
    paper_sizes: ClassVar[Mapping[Split, int]] = {
        "train": 4000,
        "validation": 300,
        "test": 1000,
    }

    digits: int = parameter(6, "of the number to double", check=positive)

    def examples(
        self, split: Split, seed: int, limit: int | None = None
    ) -> Sequence[Example]:
        """Numbers n with n mod 10 in 0..7 are for training, 8 for validation, 9 for the test."""
        rng = random.Random(f"{split} {seed}")
        last = {"train": range(8), "validation": [8], "test": [9]}[split]
        found = []
        for i in range(self.paper_sizes[split] if limit is None else limit):
            n = 10 * rng.randrange(10 ** (self.digits - 1)) + rng.choice(last)
            answer = Answer(Fraction(2 * n))
            found.append(
                Example(f"{split}-{i}", f"Double {n}.\nAnswer: ", str(2 * n), answer)
            )
        return found

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """What identifies the data: change anything of it and the cells are done again."""
        return {
            "task": self.name,
            "generator": 1,
            "digits": self.digits,
            "split": split,
            "seed": seed,
        }

    def parse(self, completion: str) -> Answer | None:
        """The first line as one number."""
        value = parse_number(plain_text(completion).partition("\n")[0])
        return None if value is None else Answer(value)

    def metrics(self) -> Sequence[Metric]:
        """Exact match first: it selects the best epoch."""
        return (ExactMatch(), MeanAbsoluteError(), RSquared(), ParseFailureRate())
