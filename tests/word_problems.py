"""Synthetic word problems: the format and the heavy-tailed errors of GSM8K, without its text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

TASKS = ("gsm8k", "svamp")


def problems(n: int, seed: int) -> pd.DataFrame:
    """Problems with whole answers from 0 to thousands: uid, prompt, target.

    A rationale with two other numbers stands before each answer, as in GSM8K.
    """
    rng = np.random.default_rng(seed)
    answers = np.floor(np.exp(rng.normal(3.6, 1.6, n))).astype(int)
    rows = [
        (
            f"problem-{at:05d}",
            f"Question: how many are {answer}?\nAnswer:",
            f" {answer + 7} - 7 are left.\n#### {answer}",
        )
        for at, answer in enumerate(answers)
    ]
    return pd.DataFrame(rows, columns=["uid", "prompt", "target"])


def answers_of(examples: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """What a model of that skill writes: right, near, off by a factor, or no number at all."""
    rng = np.random.default_rng(seed)
    n = len(examples)
    right, kind = rng.random(n) < skill, rng.integers(0, 40, n)
    factor = np.exp(rng.normal(0, 1.1, n))
    texts = []
    for target, good, how, by in zip(examples["target"], right, kind, factor, strict=True):
        answer = int(target.split()[-1])
        off = answer + int(how) % 3 - 1 if how < 12 else int(answer * by)
        wrong = {
            0: "I do not know", 1: f"#### {-answer}", 2: f"#### {answer * 10}",
            3: f"#### {answer * 100}", 4: f"#### {answer / 10:.1f}", 5: "",
        }.get(int(how), f"#### {off}")  # fmt: skip
        texts.append((f"So {answer}" if how % 20 == 7 else target.strip()) if good else wrong)
    return as_completions(examples, texts)


def as_completions(examples: pd.DataFrame, texts: Sequence[str]) -> pd.DataFrame:
    """A frame of completions with these texts; the empty one was cut off."""
    frame = examples[["uid", "prompt", "target"]].copy()
    frame["completion"] = list(texts)
    frame["finish_reason"] = np.where(np.array(list(texts)) == "", "length", "stop")
    frame["completion_tokens"] = [len(text) + 1 for text in texts]
    frame["prompt_tokens"] = examples["prompt"].str.len().to_numpy()
    return frame
