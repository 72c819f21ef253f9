"""What a cell of a generated run holds: completions, digit probes, a training log.

Nothing is trained or decoded: numbers are drawn. The parsers, annotations and metrics are those of
the registered tasks.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..decoding.probe import OUTSIDE

Question = Callable[[int, int], tuple[str, str, dict[str, Any]]]
"""(prompt, target, attributes) of the example with two drawn numbers; the second is below 60."""

QUESTIONS: Mapping[str, Question] = {
    "arithmetic": lambda a, b: (
        f"What is {a} - {b}?\nAnswer: ",
        f"{a - b}",
        {"operations": 1 + b % 6, "level": "interpolate"},
    ),
    "gsm8k": lambda a, b: (
        f"Question: how many are {a}?\nAnswer:",
        f" Every {b} of {3 * b} are kept, 4 of them twice.\n#### {a}",
        {},
    ),
    "clock_time": lambda a, b: (
        "Question: What time is it?\nAnswer:",
        f" {1 + a % 12}:{b // 5 * 5:02d}",
        {"hour": 1 + a % 12, "minute": b // 5 * 5, "face": a % 80, "numerals": "arabic"},
    ),
    "chartqa": lambda a, b: (
        "Question: How high is the bar?\nAnswer:",
        f" {b}",
        {
            "chart_kind": "bar",
            "question_kind": "value",
            "reading": "printed",
            "origin": "synthetic",
        },
    ),
    "samsum": lambda a, b: (
        "Summarize.\n\nIda: The hens?\n\nSummary:",
        f" {('Ida', 'Ole', 'Max')[a % 3]} feeds the {('hens', 'geese', 'sheep')[b % 3]}.",
        {"turns": 1},
    ),
}
"""The tasks that reports look for, by name."""


def examples(task: str, n: int, picture: Path) -> pd.DataFrame:
    """uid, prompt, target, attributes, and for a task with pictures the path of one."""
    rng = np.random.default_rng(len(task))
    numbers = zip(np.exp(rng.normal(3.5, 1.5, n)), rng.integers(2, 60, n), strict=True)
    questions = [QUESTIONS[task](int(a), int(b)) for a, b in numbers]
    image = {"image": str(picture)} if task in ("clock_time", "chartqa") else {}
    return pd.DataFrame(
        {"uid": f"{task}-{at}", "prompt": prompt, "target": target, **image, **facts}
        for at, (prompt, target, facts) in enumerate(questions)
    )


def answered(frame: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """What a model of that skill says: the target, another example's, or no number."""
    rng = np.random.default_rng(seed)
    draw, other = rng.random(len(frame)), rng.permutation(frame["target"].to_numpy())
    texts = np.select([draw > 0.95, draw < skill], [" no idea", frame["target"]], other)
    reasons = np.where(draw > 0.97, "length", "stop")
    return frame.assign(
        completion=texts, finish_reason=reasons, completion_tokens=4, prompt_tokens=9
    )


def probes(frame: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """Digit distributions around the digits of the targets; the answer follows a mark ####."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        [
            (uid, at, at + 2, place, digit)
            for uid, target in zip(frame["uid"], frame["target"], strict=True)
            for at, (place, digit) in enumerate(_digits(target))
        ],
        columns=["uid", "digit", "position", "answer_digit", "target_value"],
    )
    target = table["target_value"].to_numpy(np.int64)
    distance = np.abs(np.arange(10) - target[:, None])
    p = np.exp(4 * skill * (distance == 0) - 0.3 * distance + rng.normal(0, 1, distance.shape))
    p /= p.sum(1, keepdims=True)
    vectors = [list(row) if at < 20 else None for at, row in enumerate(p)]
    return table.assign(
        p_target=p[np.arange(len(p)), target],
        maximum=p.max(1),
        argmax_value=p.argmax(1),
        mean=p @ range(10),
        **{f"p{digit}": p[:, digit] for digit in range(10)},
        vector=pd.Series(vectors, dtype=object),
    )


def _digits(target: str) -> list[tuple[int, int]]:
    """The digits of a target, each after its place in the final answer (-1: outside it)."""
    before, mark, answer = target.rpartition("####")
    outside = [(OUTSIDE, int(c)) for c in before + mark if c.isdigit()]
    return outside + list(enumerate(int(c) for c in answer if c.isdigit()))


def train_log(steps: int, auxiliary: bool, seed: int) -> pd.DataFrame:
    """A falling cross-entropy; the auxiliary is missing if the loss has none."""
    rng = np.random.default_rng(seed)
    step = np.arange(1, steps + 1)
    entropy = 2 * np.exp(-step / (steps / 3)) + 0.8 + rng.normal(0, 0.05, steps)
    extra = np.exp(-step / steps) if auxiliary else np.full(steps, np.nan)
    return pd.DataFrame(
        {
            "step": step,
            "epoch": step / steps * 2,
            "loss": entropy + np.nan_to_num(extra),
            "cross_entropy": entropy,
            "auxiliary": extra,
            "relative_auxiliary": extra / entropy,
            "learning_rate": 2e-4 * (1 - step / steps),
            "grad_norm": 1.0,
            "tokens": 96,
            "units": 40 if auxiliary else 0,
            "seconds": 0.25,
        }
    )
