"""Synthetic vision problems: drawn clocks and bars, and what a model reads of them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw
from smmd_bench.tasks._clock_metrics import TimeGap, TimeGapWrapped
from smmd_bench.tasks._lm_eval_relaxed import lm_eval_relaxed

from smmd_bench.contracts import (
    Answer,
    ExactMatch,
    Example,
    Metric,
    Modality,
    ParseFailureRate,
    Split,
    TruncationRate,
)
from tests.word_problems import Share

TASKS = ("clock_time", "chartqa")
_TIME = re.compile(r"\s*(\d{1,2}):(\d{2})\s*$")
_SIZES: Mapping[Split, int] = {"train": 10, "validation": 10, "test": 10}


@dataclass(frozen=True)
class ToyClocks:
    """A task that reads `h:mm` as minutes; it stands for `clock_time`."""

    name: ClassVar[str] = "clock_time"
    version: ClassVar[int] = 1
    modality: ClassVar[Modality] = Modality.VISION
    max_new_tokens: ClassVar[int] = 8
    paper_sizes: ClassVar[Mapping[Split, int]] = _SIZES

    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        raise NotImplementedError

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        return {"source": "synthetic", "split": split, "seed": seed}

    def parse(self, completion: str) -> Answer | None:
        found = _TIME.match(completion)
        if found is None or not 1 <= int(found[1]) <= 12 or int(found[2]) > 59:
            return None
        return Answer(Fraction(60 * int(found[1]) + int(found[2])))

    def metrics(self) -> Sequence[Metric]:
        return ExactMatch(), TimeGap(), TimeGapWrapped(), ParseFailureRate(), TruncationRate()


@dataclass(frozen=True)
class ToyCharts:
    """A task that reads a whole number; it stands for `chartqa`."""

    name: ClassVar[str] = "chartqa"
    version: ClassVar[int] = 1
    modality: ClassVar[Modality] = Modality.VISION
    max_new_tokens: ClassVar[int] = 8
    paper_sizes: ClassVar[Mapping[Split, int]] = _SIZES

    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        raise NotImplementedError

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        return {"source": "synthetic", "split": split, "seed": seed}

    def parse(self, completion: str) -> Answer | None:
        try:
            return Answer(Fraction(completion.strip().removeprefix("~")))
        except ValueError:
            return None

    def annotate(self, completion: str, target: str) -> Mapping[str, bool]:
        read, truth = self.parse(completion), float(target)
        near = read is not None and abs(float(read) - truth) <= 0.05 * abs(truth)
        return {"relaxed": near, "relaxed_lm_eval": lm_eval_relaxed(completion, target)}

    def metrics(self) -> Sequence[Metric]:
        relaxed = Share("relaxed_accuracy", ("relaxed",))
        by_lm_eval = Share("relaxed_accuracy_lm_eval", ("relaxed_lm_eval",))
        return ExactMatch(), relaxed, by_lm_eval, ParseFailureRate(), TruncationRate()  # type: ignore[return-value]


def problems(task: str, n: int, seed: int, folder: Path) -> pd.DataFrame:
    """uid, prompt, target and the path of a picture that is drawn in the folder."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for at in range(n):
        hour, minute = int(rng.integers(1, 13)), 5 * int(rng.integers(0, 12))
        bars = [int(bar) for bar in rng.integers(2, 40, 5)]
        picture = folder / f"{task}-{at}.png"
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
