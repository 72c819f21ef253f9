"""Synthetic dialogues with summaries: the format of SAMSum, without its text."""

from __future__ import annotations

import numpy as np
import pandas as pd
from smmd_bench.tasks.samsum import SAMSum

from tests.word_problems import as_completions

TASKS = ("samsum",)
_WRONG = ("Ada", "Bruno", "Clara", "Dora")


def problems(n: int, seed: int) -> pd.DataFrame:
    """Dialogues and their summaries, of which a third hold a number: uid, prompt, target."""
    examples = SAMSum(source="synthetic").examples("test", seed, n)
    rows = [(example.uid, example.prompt, example.target) for example in examples]
    return pd.DataFrame(rows, columns=["uid", "prompt", "target"])


def answers_of(examples: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """What a model of that skill writes: the summary with some words left out or replaced."""
    rng = np.random.default_rng(seed)
    texts = []
    for target in examples["target"]:
        words = [
            word if good else str(rng.choice(_WRONG))
            for word, good in zip(target.split(), rng.random(99) < skill + 0.3, strict=False)
        ]
        texts.append(" ".join(words[: int(rng.integers(4, 12))]) if rng.random() > 0.02 else "")
    return as_completions(examples, texts)
