"""Short word problems of many wordings, which `builtin/tiny` is pre-trained on beside the task's.

A model that knows the templates of `gsm8k[source=synthetic]` alone does not read another one. These
lie in tiny_stories.yaml, beside this file, which says how they are written.
"""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from smmd_bench.tasks._word_problems import WordProblem, draw_numbers, write_problem

_CHOICE = re.compile(r"\(([^()]*\|[^()]*)\)")
ALSO = 0.3
"""The share of stories with a number that is not needed."""


@cache
def _content() -> dict[str, Any]:
    return dict(yaml.safe_load((Path(__file__).parent / "tiny_stories.yaml").read_text()))


def story_at(key: str, at: int) -> WordProblem:
    """The story number `at` under a key; the same arguments give the same text."""
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
