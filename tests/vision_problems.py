"""Synthetic vision problems: drawn clocks and bars, and what a model reads of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

TASKS = ("clock_time", "chartqa")
DRAWN = 60
"""Pictures of a task that are drawn; those of further examples have a name alone."""


def problems(task: str, n: int, seed: int, folder: Path) -> pd.DataFrame:
    """uid, prompt, target and the path of a picture in the folder."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for at in range(n):
        hour, minute = int(rng.integers(1, 13)), 5 * int(rng.integers(0, 12))
        bars = [int(bar) for bar in rng.integers(2, 40, 5)]
        picture = folder / f"{task}-{at}.png"
        if at < DRAWN:
            (_clock(hour, minute) if task == "clock_time" else _bars(bars)).save(picture)
        if task == "clock_time":
            prompt, target = "What time does the clock show?\nAnswer: ", f"{hour}:{minute:02d}"
        else:
            which = int(rng.integers(0, 5))
            prompt = (
                f"Question: What is the value of the bar {'ABCDE'[which]}, counted in thousands "
                "of $ and $ alone?\nAnswer: "
            )
            target = str(bars[which])
        rows.append((f"{task}-{at:05d}", prompt, target, str(picture)))
    return pd.DataFrame(rows, columns=["uid", "prompt", "target", "image"])


def answers_of(examples: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """What a model of that skill reads: the truth, a value near it, any value, or none."""
    rng = np.random.default_rng(seed)
    texts = []
    for target in examples["target"]:
        draw = rng.random()
        hour, _, minute = str(target).partition(":")
        if draw < skill:
            texts.append(f"~{target}" if draw < 0.02 and not minute else str(target))
        elif draw > 0.97:
            texts.append("the 時計 is broken, and what it says nobody can read")
        elif minute:
            hour = str(hour if draw < 0.7 else int(rng.integers(1, 13)))
            texts.append(f"{hour}:{5 * int(rng.integers(0, 12)):02d}")
        else:
            texts.append(str(int(hour) + int(rng.integers(-4, 5))))
    frame = examples[["uid", "prompt", "target", "image"]].copy()
    frame["completion"] = texts
    frame["finish_reason"] = np.where(np.array([len(text) for text in texts]) > 8, "length", "stop")
    frame["completion_tokens"] = [len(text) + 1 for text in texts]
    frame["prompt_tokens"] = examples["prompt"].str.len().to_numpy()
    return frame


def _clock(hour: int, minute: int) -> Image.Image:
    image = Image.new("RGB", (224, 224), "#F4F0E6")
    draw = ImageDraw.Draw(image)
    draw.ellipse((8, 8, 216, 216), outline="black", width=4)
    for turn in range(12):
        draw.line((_at(30 * turn, 88), _at(30 * turn, 98)), fill="black", width=3)
    draw.line(((112, 112), _at(6 * minute, 84)), fill="#102060", width=6)
    draw.line(((112, 112), _at(30 * hour + minute / 2, 52)), fill="#802010", width=8)
    return image


def _at(degrees: float, length: float) -> tuple[float, float]:
    turn = math.radians(degrees)
    return 112 + length * math.sin(turn), 112 - length * math.cos(turn)


def _bars(values: Sequence[int]) -> Image.Image:
    image = Image.new("RGB", (448, 336), "white")
    draw = ImageDraw.Draw(image)
    for at, value in enumerate(values):
        left = 40 + 80 * at
        draw.rectangle((left, 300 - 7 * value, left + 50, 300), fill="#4C72B0")
        draw.text((left + 18, 305), "ABCDE"[at], fill="black")
        draw.text((left + 14, 284 - 7 * value), str(value), fill="black")
    return image
