"""Temperatures out of English sentences, some of which hold another number as well."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

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
    first_number,
    parameter,
    plain_text,
    share,
)

GENERATOR = 1
"""Raise it when examples come out differently; `version` below when answers are read otherwise."""

LOWEST, HIGHEST = -40, 45

PLACES: Mapping[Split, Sequence[str]] = {
    "train": (
        "Oslo Turin Quito Lagos Perth Delhi Minsk Dakar Lima Kyoto Boston Cairo Tunis Hanoi Riga "
        "Bern Nairobi Malmo Porto Ankara Yakutsk Denver Leeds Busan Accra Nuuk Tromso Adelaide"
    ).split(),
    "validation": "Tallinn Sapporo Bogota Madrid Irkutsk Lusaka".split(),
    "test": "Helsinki Santiago Winnipeg Rabat Ulaanbaatar Darwin".split(),
}
"""No place is in two splits, so that no sentence can be, whatever the seed and the sizes."""

CLAUSES = ("it was {}", "the thermometer read {}", "people still speak of {}")
ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
TENS = "- - twenty thirty forty".split()


@dataclass(frozen=True)
class Temperature:
    """The temperature in a sentence, such as "twelve degrees below zero", as a number."""

    name: ClassVar[str] = "temperature"
    version: ClassVar[int] = 1
    modality: ClassVar[Modality] = Modality.TEXT
    max_new_tokens: ClassVar[int] = 8
    licence: ClassVar[str] = "Apache-2.0, made here"
    paper_sizes: ClassVar[Mapping[Split, int]] = {"train": 4000, "validation": 300, "test": 1000}

    unit: Literal["celsius", "fahrenheit"] = parameter(
        "celsius", "of the answer; sentences are in degrees Celsius"
    )
    distractors: float = parameter(0.5, "share of sentences with another number", check=share)

    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        """The first `limit` examples; every split has places of its own."""
        rng = random.Random(f"{self.name} {split} {seed}")  # never hash(): it differs by process
        count = self.paper_sizes[split] if limit is None else limit
        return [self._example(rng, split, f"{self.name}-{split}-{seed}-{i}") for i in range(count)]

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """All that the examples follow from: change any of it and the cells are done again."""
        return {
            "task": self.name,
            "generator": GENERATOR,
            "unit": self.unit,
            "distractors": self.distractors,
            "split": split,
            "seed": seed,
        }

    def parse(self, completion: str) -> Answer | None:
        """The first number of the first line; None where there is none, which is counted."""
        value = first_number(plain_text(completion).partition("\n")[0])
        return None if value is None else Answer(value)

    def metrics(self) -> Sequence[Metric]:
        """Exact match first: it selects the best epoch."""
        return (ExactMatch(), MeanAbsoluteError(), RSquared(), ParseFailureRate())

    def _example(self, rng: random.Random, split: Split, uid: str) -> Example:
        celsius, place = rng.randint(LOWEST, HIGHEST), rng.choice(PLACES[split])
        clause = rng.choice(CLAUSES).format(said(celsius, rng))
        distractor = "none"
        if rng.random() < self.distractors:
            distractor, other = another_number(rng)
            clause = f"{other} {clause}" if rng.random() < 0.5 else f"{clause} {other}"
        sentence = f"{clause[0].upper()}{clause[1:]} in {place}."
        target = spelled(Fraction(9 * celsius, 5) + 32 if self.unit == "fahrenheit" else celsius)
        return Example(
            uid=uid,
            prompt=f"{sentence}\nDegrees {self.unit.title()}: ",
            target=target,
            answer=Answer(Fraction(target)),
            attributes={"celsius": celsius, "distractor": distractor},
        )


def said(celsius: int, rng: random.Random) -> str:
    """`twelve degrees below zero`, `minus twelve degrees`, `-12 degrees` and their like."""
    size = str(abs(celsius)) if rng.random() < 0.5 else in_words(abs(celsius))
    degrees = f"{size} degree" if abs(celsius) == 1 else f"{size} degrees"
    if celsius > 0:
        return degrees if rng.random() < 0.5 else f"{degrees} above zero"
    if celsius == 0:
        return degrees
    if rng.random() < 0.5:
        return f"{degrees} below zero"
    return f"-{degrees}" if size.isdigit() else f"minus {degrees}"


def another_number(rng: random.Random) -> tuple[str, str]:
    """What it is of, and the words: a time, a wind speed or some hours."""
    kind = rng.choice(("time", "wind", "rain"))
    if kind == "time":
        return kind, f"at {rng.randrange(24)}:{rng.randrange(60):02d}"
    if kind == "wind":
        return kind, f"in a wind of {rng.randint(3, 90)} km/h"
    return kind, f"after {rng.randint(2, 40)} hours of rain"


def in_words(number: int) -> str:
    """`forty-two`, of a number below fifty."""
    if number < len(ONES):
        return ONES[number]
    tens, ones = divmod(number, 10)
    return TENS[tens] if ones == 0 else f"{TENS[tens]}-{ONES[ones]}"


def spelled(value: Fraction | int) -> str:
    """`-12` or `10.4`: fifths have one decimal."""
    return f"{float(value):g}"
