"""What a cell of a generated run holds: completions, digit probes, a training log.

Nothing is trained or decoded: numbers are drawn. The parsers, annotations and metrics are those of
the registered tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..decoding.answer_digits import OUTSIDE

Draw = Callable[[np.random.Generator], tuple[str, str, dict[str, Any]]]
"""(prompt, target, attributes) of an example."""


def _sum(rng: np.random.Generator) -> tuple[str, str, dict[str, Any]]:
    a, b = (int(x) for x in rng.integers(-50, 100, 2))
    facts = {"operations": int(rng.integers(1, 7)), "level": "interpolate"}
    return f"What is {a} + {b}?\nAnswer: ", str(a + b), facts


def _problem(rng: np.random.Generator) -> tuple[str, str, dict[str, Any]]:
    n = int(np.exp(rng.normal(3.5, 1.5)))
    rationale = f" Every {n + 4} of {3 * n + 12} are kept, 4 of them twice.\n"
    return f"Question: how many are {n}?\nAnswer:", f"{rationale}#### {n}", {}


def _clock(rng: np.random.Generator) -> tuple[str, str, dict[str, Any]]:
    hour, minute = int(rng.integers(1, 13)), 5 * int(rng.integers(12))
    facts = {"hour": hour, "minute": minute, "face": int(rng.integers(80)), "numerals": "arabic"}
    return "Question: What time is it?\nAnswer:", f" {hour}:{minute:02d}", facts


def _chart(rng: np.random.Generator) -> tuple[str, str, dict[str, Any]]:
    n = int(rng.integers(2, 90))
    facts = {"chart_kind": "bar", "question_kind": "value", "reading": "printed"}
    return "Question: How high is the bar?\nAnswer:", f" {n}", {**facts, "origin": "synthetic"}


def _dialogue(rng: np.random.Generator) -> tuple[str, str, dict[str, Any]]:
    who, what = rng.choice(["Ida", "Ole", "Max"]), rng.choice(["hens", "geese", "sheep"])
    return f"Summarize.\n\nIda: The {what}?\n\nSummary:", f" {who} feeds the {what}.", {"turns": 1}


KINDS: Mapping[str, Draw] = {
    "arithmetic": _sum,
    "gsm8k": _problem,
    "clock_time": _clock,
    "chartqa": _chart,
    "samsum": _dialogue,
}
"""The tasks that reports look for, by name."""
PICTURED = ("clock_time", "chartqa")


def examples(task: str, n: int, picture: Path) -> pd.DataFrame:
    """uid, prompt, target, attributes, and the path of a picture where the task has any."""
    rng = np.random.default_rng(len(task))
    rows = []
    for at in range(n):
        prompt, target, facts = KINDS[task](rng)
        image = {"image": str(picture)} if task in PICTURED else {}
        rows.append({"uid": f"{task}-{at}", "prompt": prompt, "target": target, **image, **facts})
    return pd.DataFrame(rows)


def answered(frame: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """What a model of that skill says: the target, another example's, or nothing of use."""
    rng = np.random.default_rng(seed)
    draw, other = rng.random(len(frame)), rng.permutation(frame["target"].to_numpy())
    texts = np.where(draw < skill, frame["target"], other)
    texts = np.where(draw > 0.95, " no idea", texts)
    reasons = np.where(draw > 0.97, "length", "stop")
    return frame.assign(
        completion=texts, finish_reason=reasons, completion_tokens=4, prompt_tokens=9
    )


def probes(frame: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """Digit distributions around the digits of the targets; the answer stands after a mark ####."""
    rng = np.random.default_rng(seed)
    found = [
        (uid, at, at + 2, place, int(digit))
        for uid, target in zip(frame["uid"], frame["target"], strict=True)
        for at, (place, digit) in enumerate(_digits(target))
    ]
    columns = ["uid", "digit", "position", "answer_digit", "target_value"]
    table = pd.DataFrame(found, columns=columns)
    target = table["target_value"].to_numpy(np.int64)
    distance = np.abs(np.arange(10) - target[:, None])
    p = np.exp(4 * skill * (distance == 0) - 0.3 * distance + rng.normal(0, 1, distance.shape))
    p /= p.sum(1, keepdims=True)
    table["p_target"] = p[np.arange(len(p)), target]
    table["maximum"], table["argmax_value"], table["mean"] = p.max(1), p.argmax(1), p @ range(10)
    for digit in range(10):
        table[f"p{digit}"] = p[:, digit]
    vectors = [list(row) if at < 20 else None for at, row in enumerate(p)]
    table["vector"] = pd.Series(vectors, dtype=object)
    return table


def _digits(target: str) -> list[tuple[int, str]]:
    """The digits of a target, each with its place in the final answer (-1: outside it)."""
    before, mark, answer = target.rpartition("####")
    outside = [(OUTSIDE, c) for c in before + mark if c.isdigit()]
    return outside + list(enumerate(c for c in answer if c.isdigit()))


def train_log(steps: int, auxiliary: bool, seed: int) -> pd.DataFrame:
    """A falling cross-entropy; the auxiliary is missing where the loss has none."""
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
