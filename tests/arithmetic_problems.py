"""Synthetic arithmetic: mixed expressions with their exact values, and what a model answers."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pandas as pd


def problems(n: int, seed: int) -> pd.DataFrame:
    """Mixed expressions with their exact values: uid, prompt, target, operations, level."""
    rng = np.random.default_rng(seed)
    rows = []
    for at in range(n):
        operations = int(rng.integers(1, 7))
        text, value = str(first := int(rng.integers(0, 100))), Fraction(first)
        for _ in range(operations):
            number = int(rng.integers(1, 60))
            match rng.integers(0, 4):
                case 0:
                    text, value = f"{text} + {number}", value + number
                case 1:
                    text, value = f"{text} - {number}", value - number
                case 2:
                    text, value = f"({text})*{number % 5 + 1}", value * (number % 5 + 1)
                case _:
                    text, value = f"({text})/{number % 4 + 1}", value / (number % 4 + 1)

        uid = f"test-{at:06d}"
        rows.append(
            (uid, f"What is {text}?\nAnswer: ", str(value), operations, "interpolate")
        )
    return pd.DataFrame(
        rows, columns=["uid", "prompt", "target", "operations", "level"]
    )


def answers_of(examples: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """What a model of that skill answers."""
    rng = np.random.default_rng(seed)
    n = len(examples)
    # Short expressions are the easier ones.
    operations = examples["operations"].to_numpy()
    share = skill * 1.7 - 0.12 * operations
    right = rng.random(n) < share
    kind, step = rng.integers(0, 20, n), rng.integers(1, 15, n)
    answers = []
    rows = zip(examples["target"], right, kind, step, strict=True)
    for target, good, how, by in rows:
        value = Fraction(target)
        if good:
            answers.append(target)
        elif how == 0:
            answers.append("the answer")
        elif how == 1:
            answers.append(str(-value))
        elif how == 2:
            answers.append(str(value * 10))
        else:
            answers.append(str(value + int(by) * (-1 if how % 2 else 1)))
    return as_completions(examples, answers, [text == "the answer" for text in answers])


def as_completions(
    examples: pd.DataFrame, texts: Sequence[str], cut: Sequence[bool] | None = None
) -> pd.DataFrame:
    """The examples with these texts as completions; those cut off are empty or as said."""
    ended = [not text for text in texts] if cut is None else cut
    return examples.assign(
        completion=list(texts),
        finish_reason=np.where(ended, "length", "stop"),
        completion_tokens=[len(text) + 1 for text in texts],
        prompt_tokens=examples["prompt"].str.len().to_numpy(),
    )
