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


class ExamplesAreNone(Good):
    name = "examples-are-none"

    def examples(self, split, seed, limit=None):
        return None


class ExamplesAreText(Good):
    name = "examples-are-text"

    def examples(self, split, seed, limit=None):
        return ["1 + 0 ="] * 4


class PromptsAreNumbers(Good):
    name = "prompts-are-numbers"

    def examples(self, split, seed, limit=None):
        return [Example(n, n, n, n) for n in range(limit or self.paper_sizes[split])]


class IdentityIsNone(Good):
    name = "identity-is-none"

    def identity(self, split, seed):
        return None


class IdentityIsAnObject(Good):
    name = "identity-is-an-object"

    def identity(self, split, seed):
        return {"me": self}


class MetricsAreNone(Good):
    name = "metrics-are-none"

    def metrics(self):
        return None


class MetricsAreEmpty(Good):
    name = "metrics-are-empty"

    def metrics(self):
        return ()


class MetricsAreText(Good):
    name = "metrics-are-text"

    def metrics(self):
        return ("exact_match",)


class ParseGivesText(Good):
    name = "parse-gives-text"

    def parse(self, completion):
        return "three"


class Shapeless(ExactMatch):
    name = "shapeless"

    def statistic(self, *columns, axis=-1):
        return "rubbish"


class StatisticsAreText(Good):
    name = "statistics-are-text"

    def metrics(self):
        return (Shapeless(),)
