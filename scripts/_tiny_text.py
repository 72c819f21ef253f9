"""What `builtin/tiny` is pre-trained on: prompts and targets, as the tasks write them.

A source gives `count` pairs of a split; the same key gives the same pairs. The training split alone
is trained on, so that the tasks' validation and test examples stay unseen.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from smmd_bench.tasks._mixed_expressions import REGIMES, problems, split_of
from smmd_bench.tasks._word_problems import (
    WordProblem,
    draw_numbers,
    made_problem,
    write_problem,
)
from smmd_bench.tasks.arithmetic import PROMPT, TRAINING_LEVELS
from smmd_bench.tasks.gsm8k import _NOTE

from smmd_bench.plugin_system.registry import load_task
from smmd_bench.storage.strict_yaml import read_yaml

Pairs = list[tuple[str, str]]
Source = Callable[[str, str, int], Pairs]
_CHOICE = re.compile(r"\(([^()]*\|[^()]*)\)")
ALSO = 0.3
"""The share of stories with a number that is not needed."""


def arithmetic(levels: tuple[str, ...], operations: tuple[int, int] | None) -> Source:
    """Expressions of the levels in turn; `operations` limits how many operations they have."""

    def drawn(key: str, split: str, count: int) -> Pairs:
        rng = random.Random(f"{key} {levels} {operations}")
        dirichlet = np.random.RandomState(rng.getrandbits(32))
        streams = [
            problems(REGIMES[level], rng, dirichlet, operations) for level in levels
        ]
        found: Pairs = []
        while len(found) < count:
            problem = next(streams[len(found) % len(streams)])
            if split_of(problem.expression) == split:
                found.append((PROMPT.format(question=problem.question), problem.answer))
        return found

    return drawn


def facts(key: str, split: str, count: int) -> Pairs:
    """One operation on small whole numbers; every second sum or difference carries."""
    rng = random.Random(f"{key} facts")
    found: Pairs = []
    while len(found) < count:
        expression, answer, carries = _fact(rng)
        if split_of(expression) == split and (carries or rng.random() < 0.5):
            question = rng.choice(
                ("{}", "What is {}?", "Evaluate {}.", "Calculate {}.")
            )
            found.append(
                (PROMPT.format(question=question.format(expression)), str(answer))
            )
    return found


def _fact(rng: random.Random) -> tuple[str, int, bool]:
    """An expression, its value, and whether a digit is carried (products and quotients: yes)."""
    kind = rng.choice("++--*/")
    if kind in "*/":
        a, b = rng.randint(2, 99), rng.randint(2, 20)
        return (f"{a}*{b}", a * b, True) if kind == "*" else (f"{a * b}/{b}", a, True)
    a, b = (rng.randint(1, 10 ** rng.randint(1, 3)) for _ in range(2))
    if kind == "+":
        return f"{a} + {b}", a + b, a % 10 + b % 10 > 9
    return f"{a} - {b}", a - b, a % 10 < b % 10


def of_task(spec: str) -> Source:
    """Examples of a task, each key with a data seed of its own."""

    def drawn(key: str, split: str, count: int) -> Pairs:
        seed = random.Random(key).getrandbits(32)
        examples = load_task(spec).examples(split, seed, count)
        return [(example.prompt, example.target) for example in examples]

    return drawn


def svamp(key: str, split: str, count: int) -> Pairs:
    """The training problems of `svamp[source=synthetic]`, which is a test itself."""
    seed = random.Random(key).getrandbits(32)
    made = [made_problem("svamp", split, seed, at) for at in range(count)]
    return [(f"Question: {p.question}\nAnswer:", f" #### {p.value}") for p in made]


@cache
def _content() -> dict[str, Any]:
    return dict(read_yaml((Path(__file__).parent / "tiny_stories.yaml").read_text()))


def story_at(key: str, at: int) -> WordProblem:
    """The word problem number `at` under a key, in one of many wordings (tiny_stories.yaml): who
    knows the task's templates alone reads no other one."""
    rng = random.Random(f"{key} story {at}")
    name = rng.choice([*_content()["stories"]])
    template = dict(_content()["stories"][name])
    story = template["story"]
    if rng.random() < ALSO:
        template["values"] = {**template["values"], "e": "2..90"}
        *sentences, question = re.split(r"(?<=[.?]) (?![^(]*\))", story)
        sentences.insert(rng.randint(0, len(sentences)), rng.choice(_content()["also"]))
        story = " ".join([*sentences, question])
    while _CHOICE.search(story):
        story = _CHOICE.sub(lambda found: rng.choice(found[1].split("|")), story)
    template["story"] = story
    while (drawn := draw_numbers(template, rng)) is None:
        pass
    return write_problem(name, template, *drawn, rng)


def stories(key: str, split: str, count: int) -> Pairs:
    """Word problems of many wordings; a split is a part of the key."""
    made = [story_at(f"{key} {split}", at) for at in range(count)]
    return [
        (f"Question: {p.question}\nAnswer:", f" {_NOTE.sub('', p.answer)}")
        for p in made
    ]


SOURCES: Mapping[str, Source] = {
    "facts": facts,
    "easy": arithmetic(("easy",), (1, 2)),
    "few": arithmetic(TRAINING_LEVELS, (1, 3)),
    "paper": arithmetic(TRAINING_LEVELS, None),
    "words": of_task("gsm8k[source=synthetic]"),
    "svamp": svamp,
    "dialogues": of_task("samsum[source=synthetic]"),
    "stories": stories,
}
HELD_OUT: Mapping[str, Source] = {
    **{
        name: SOURCES[name]
        for name in ("easy", "words", "svamp", "dialogues", "stories")
    },
    "paper": arithmetic(("interpolate",), None),
}
"""What the progress is measured on. Of unseen templates the answer alone could be right, which
asks for decoding: docs/builtin.md has it."""
