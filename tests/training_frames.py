"""Frames that a synthetic cell holds: its digit probes, and the log of its training."""

import re

import numpy as np
import pandas as pd

AUXILIARY = {"ntl": 1.8, "ntil": 2.4, "gce": 1.2, "smmd": 0.6}


def probes_of(examples: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """Digit distributions around the target digits, sharper for a better model.

    The final answer is what stands after ####, or the whole target.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for uid, target in zip(examples["uid"], examples["target"], strict=True):
        before_answer = target[: target.rfind("####") + 1]
        outside = len(re.findall(r"\d", before_answer))
        for digit, symbol in enumerate(re.findall(r"\d", target)):
            answer_digit = digit - outside if digit >= outside else -1
            rows.append((uid, digit, digit + 2, answer_digit, int(symbol)))
    columns = ["uid", "digit", "position", "answer_digit", "target_value"]
    frame = pd.DataFrame(rows, columns=columns)
    target = frame["target_value"].to_numpy()
    distance = np.abs(np.arange(10)[None, :] - target[:, None])
    logits = -(0.3 + skill) * distance + 5 * skill * (distance == 0)
    logits = logits + rng.normal(0, 1.2, logits.shape)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    frame["p_target"] = p[np.arange(len(p)), target]
    frame["maximum"] = p.max(axis=1)
    frame["argmax_value"] = p.argmax(axis=1)
    frame["mean"] = p @ np.arange(10)
    for digit in range(10):
        frame[f"p{digit}"] = p[:, digit]
    vectors: list[list[float] | None] = [list(row) for row in p[:50]]
    frame["vector"] = vectors + [None] * (len(p) - len(vectors))
    return frame


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
