"""Word problems made here from templates: GSM8K's format, and SVAMP's, without their text.

They are easier and less varied than real ones. The templates lie in `word_problems.yaml`, beside
this file, which says how they are written.
"""

from __future__ import annotations

import operator
import random
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

from smmd_bench.storage.strict_yaml import read_yaml

GENERATOR = 2
"""Version of the problems and their splits."""
_SHARES = {"train": range(8), "validation": range(8, 9), "test": range(9, 10)}
"""A problem belongs to the split whose tenths hold the hash of its template and values."""
_OPERATORS: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
_PRONOUNS = {"she": ("she", "her", "her"), "he": ("he", "him", "his")}
_STEP = re.compile(r"\[(\$?)(\w+) = ([^\]]+)\]")
_Values = dict[str, Fraction]


@dataclass(frozen=True, slots=True)
class WordProblem:
    """A problem in the columns of GSM8K: `answer` is a line a step, with notes, and "#### 42"."""

    template: str
    question: str
    answer: str
    value: Fraction


def made_problem(kind: str, split: str, seed: int, at: int) -> WordProblem:
    """The problem number `at` of a split, of "gsm8k" or "svamp"; no two splits share one."""
    templates = _content()[kind]

    # `False` stood for a parameter that is gone: without it, all problems would change.
    rng = random.Random(f"word problems {GENERATOR} {kind} False {split} {seed} {at}")
    while True:
        name = rng.choice(list(templates))
        template = templates[name]
        drawn = draw_numbers(template, rng)
        # Numbers that do not fit are drawn again with another template, too.
        if drawn is None:
            continue
        # CRC-32, since Python's own hash of a text differs from process to process.
        key = f"{kind} {name} {sorted(drawn[0].items())}"
        if zlib.crc32(key.encode()) % 10 in _SHARES[split]:
            return write_problem(name, template, *drawn, rng)


@cache
def _content() -> Mapping[str, Any]:
    text = (files("smmd_bench.tasks") / "word_problems.yaml").read_text(
        encoding="utf-8"
    )
    return dict(read_yaml(text))


def draw_numbers(
    template: Mapping[str, Any], rng: random.Random
) -> tuple[_Values, _Values] | None:
    """The values of a template and the results of its steps, by name. None: one of them is not a
    whole number above zero."""
    values: _Values = {}
    results: _Values = {}
    for name, spec in template["values"].items():
        low, dots, high = spec.partition("..")
        if dots:
            values[name] = Fraction(rng.randint(int(low), int(high)))
        else:
            values[name] = _calculate(spec, values)

    for line in template["solution"]:
        for _, name, formula in _STEP.findall(line):
            results[name] = _calculate(formula, {**values, **results})
    numbers = [*values.values(), *results.values()]
    are_whole = all(number > 0 and number.denominator == 1 for number in numbers)
    return (values, results) if are_whole else None


def _calculate(formula: str, values: Mapping[str, Fraction]) -> Fraction:
    """`x + y * 2` from left to right."""
    words = formula.split()
    operands = [Fraction(values.get(word, word)) for word in words[::2]]
    value = operands[0]
    for sign, operand in zip(words[1::2], operands[1:], strict=True):
        value = _OPERATORS[sign](value, operand)
    return value


def write_problem(
    name: str,
    template: Mapping[str, Any],
    values: _Values,
    results: _Values,
    rng: random.Random,
) -> WordProblem:
    """The problem of a template with these numbers, in words that `rng` draws."""
    numbers = {**values, **results}
    slots = _draw_words(rng)
    for key in values:
        slots[key] = str(values[key])

    def note(match: re.Match[str]) -> str:
        unit, result, formula = match.groups()
        written = "".join(str(numbers.get(word, word)) for word in formula.split())
        return f"{written} = {unit}<<{written}={numbers[result]}>>{numbers[result]}"

    lines = [_STEP.sub(note, line.format_map(slots)) for line in template["solution"]]
    value = list(results.values())[-1]
    return WordProblem(
        template=name,
        question=template["story"].format_map(slots),
        answer="\n".join([*lines, f"#### {value}"]),
        value=value,
    )


def _draw_words(rng: random.Random) -> dict[str, str]:
    """A word for every slot of a template; those of one kind differ."""
    words = _content()["words"]
    people = [(name, kind) for kind, names in words["name"].items() for name in names]
    slots: dict[str, str] = {}
    for number, (name, kind) in enumerate(rng.sample(people, 3), 1):
        they, them, their = _PRONOUNS[kind]
        person = {"name": name, "they": they, "them": them, "their": their}
        person |= {"They": they.capitalize(), "Their": their.capitalize()}
        for word in person:
            slots[f"{word}{number}"] = person[word]

    for kind, choices in words.items():
        if kind == "name":
            continue
        drawn = rng.sample(choices, 3)
        if kind == "day":
            drawn.sort(key=choices.index)  # in the order of the week
        for number, word in enumerate(drawn, 1):
            slots[f"{kind}{number}"] = word
    return slots
