"""Synthetic dialogues with summaries: the format of SAMSum, without its text."""

from __future__ import annotations

import numpy as np
import pandas as pd
from smmd_bench.tasks.samsum import PROMPT

from tests.word_problems import as_completions

TASKS = ("samsum",)
_NAMES = ("Ada", "Bruno", "Clara", "Dora", "Emil", "Fynn", "Greta", "Hana")
_THINGS = ("the tent", "a cake", "the keys", "two chairs", "his bike", "the scarf", "an umbrella")
_DAYS = ("on Monday", "tonight", "next week", "after the meeting", "at the station")


def problems(n: int, seed: int) -> pd.DataFrame:
    """Dialogues and their summaries, of which a third hold a number: uid, prompt, target."""
    rng = np.random.default_rng(seed)
    rows = []
    for at in range(n):
        one, two = rng.choice(_NAMES, 2, replace=False)
        thing, day = rng.choice(_THINGS), rng.choice(_DAYS)
        when = f"at {rng.integers(1, 13)}" if rng.random() < 1 / 3 else day
        said = f"{one}: Will you bring {thing}?\n{two}: Yes, {when}."
        target = f" {two} will bring {thing} for {one} {when}."
        rows.append((f"samsum-test-{at}", PROMPT.format(dialogue=said), target))
    return pd.DataFrame(rows, columns=["uid", "prompt", "target"])


def summaries_of(examples: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """What a model of that skill writes: the summary with some words left out or replaced."""
    rng = np.random.default_rng(seed)
    texts = []
    for target in examples["target"]:
        words = [
            word if good else str(rng.choice(_NAMES))
            for word, good in zip(target.split(), rng.random(99) < skill + 0.3, strict=False)
        ]
        texts.append(" ".join(words[: int(rng.integers(4, 12))]) if rng.random() > 0.02 else "")
    return as_completions(examples, texts)
