"""Frames that a synthetic cell holds: its digit probes, and the log of its training."""

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

AUXILIARY = {"ntl": 1.8, "ntil": 2.4, "gce": 1.2, "smmd": 0.6}


def probes_of(examples: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """Digit distributions around the target digits, sharper for a better model.

    The final answer is what stands after ####, or the whole target.
    """
    rows = []
    for uid, target in zip(examples["uid"], examples["target"], strict=True):
        rows += [(uid, *digit) for digit in _digits(target)]
    columns = ["uid", "digit", "position", "answer_digit", "target_value"]
    frame = pd.DataFrame(rows, columns=columns)

    target = frame["target_value"].to_numpy()
    p = _distributions(target, skill, seed)  # [rows, 10]
    each_row = np.arange(len(p))
    frame["p_target"] = p[each_row, target]
    frame["maximum"] = p.max(axis=1)
    frame["argmax_value"] = p.argmax(axis=1)
    frame["mean"] = p @ np.arange(10)
    for digit, share in enumerate(p.T):
        frame[f"p{digit}"] = share

    # As in a run, the first rows alone keep their vectors.
    vectors = [*map(list, p)]
    vectors[50:] = [None] * len(p[50:])
    frame["vector"] = vectors
    return frame


def _digits(target: str) -> Iterator[tuple[int, ...]]:
    """Number, position, number in the answer and value of each digit of a target."""
    before_answer = target[: target.rfind("####") + 1]
    outside = len(re.findall(r"\d", before_answer))
    for digit, symbol in enumerate(re.findall(r"\d", target)):
        answer_digit = max(digit - outside, -1)
        yield digit, digit + 2, answer_digit, int(symbol)


def _distributions(target, skill: float, seed: int):
    """Over the ten digits, for each target: [rows, 10]."""
    rng = np.random.default_rng(seed)
    distance = np.abs(np.arange(10) - target[:, None])
    logits = -(0.3 + skill) * distance + 5 * skill * (distance == 0)
    logits = logits + rng.normal(0, 1.2, logits.shape)
    weights = np.exp(logits)
    return weights / weights.sum(axis=1, keepdims=True)


def train_log_of(loss: str, steps: int) -> pd.DataFrame:
    """A falling cross-entropy, and an auxiliary where the loss has one."""
    step = np.arange(1, steps + 1)
    ce = 0.8 + 2.2 * np.exp(-3 * step / steps)
    auxiliary = AUXILIARY.get(loss.partition("[")[0], np.nan) * ce
    constants = {
        "learning_rate": 2e-4,
        "grad_norm": 1.0,
        "tokens": 96,
        "units": 40,
        "seconds": 0.25,
    }
    return pd.DataFrame(
        {
            "step": step,
            "epoch": step / steps * 4,
            "loss": ce + 3 * np.nan_to_num(auxiliary),
            "cross_entropy": ce,
            "auxiliary": auxiliary,
            "relative_auxiliary": 3 * auxiliary / ce,
            **constants,
        }
    )
