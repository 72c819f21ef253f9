"""Tasks that do in one of their methods what a plugin's bug may do."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from smmd_bench.contracts import Answer, ExactMatch, Example, Modality


@dataclass(frozen=True)
class Good:
    name: ClassVar[str] = "good-task"
    version: ClassVar[int] = 1
    modality: ClassVar[Modality] = Modality.TEXT
    max_new_tokens: ClassVar[int] = 4
    paper_sizes: ClassVar[Mapping] = {"train": 16, "validation": 4, "test": 8}

    def examples(self, split, seed, limit=None):
        count = limit or self.paper_sizes[split]
        return [
            Example(f"{split}-{n}", f"{n} + 0 =", f" {n}", Answer(Fraction(n)))
            for n in range(count)
        ]

    def identity(self, split, seed):
        return {"split": split, "seed": seed}

    def parse(self, completion):
        digits = "".join(filter(str.isdigit, completion))
        return Answer(Fraction(int(digits))) if digits else None

    def metrics(self):
        return (ExactMatch(),)


class ExamplesRaise(Good):
    name = "examples-raise"

    def examples(self, split, seed, limit=None):
        raise ValueError("mine")


class IdentityRaises(Good):
    name = "identity-raises"

    def identity(self, split, seed):
        raise ValueError("mine")


class ParseRaises(Good):
    name = "parse-raises"

    def parse(self, completion):
        raise ValueError("mine")


class ParseExits(Good):
    name = "parse-exits"

    def parse(self, completion):
        sys.exit(3)


class MetricsRaise(Good):
    name = "metrics-raise"

    def metrics(self):
        raise ValueError("mine")
