"""A task of small sums that need no model: `parse` counts from SHIFT on."""

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
    Split,
)

SHIFT = 0


@dataclass(frozen=True)
class Toy:
    """Answers from 0 to 4."""

    name = "toy"
    version = 1
    modality = Modality.TEXT
    max_new_tokens = 4
    paper_sizes: ClassVar[Mapping[Split, int]] = {
        "train": 2,
        "validation": 9,
        "test": 9,
    }
    transfers = ("toy_sums",)

    def examples(
        self, split: Split, seed: int, limit: int | None = None
    ) -> Sequence[Example]:
        count = self.paper_sizes[split] if limit is None else limit
        return [
            Example(
                f"{split}-{at}",
                f"{at} + {seed} = ",
                str(at % 5),
                Answer(Fraction(at % 5 + SHIFT)),
            )
            for at in range(count)
        ]

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        return {"split": split, "seed": seed}

    def parse(self, completion: str) -> Answer | None:
        text = completion.strip()
        return Answer(Fraction(int(text) + SHIFT)) if text.isdigit() else None

    def metrics(self) -> Sequence[Metric]:
        return (ExactMatch(), MeanAbsoluteError())


@dataclass(frozen=True)
class ToySums(Toy):
    """What the weights of `toy` are tested on, too."""

    name = "toy_sums"
    transfers = ()
