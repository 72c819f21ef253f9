"""Synthetic word problems, dialogues and vision problems, and what a model answers.

They have the formats of GSM8K, SAMSum, Clock-Time and ChartQA, and the heavy-tailed errors of
GSM8K, without their text.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from smmd_bench.tasks.samsum import SAMSum

from tests.arithmetic_problems import as_completions
from tests.tiny_vlms import draw_picture

SIZES = {"clock_time": (224, 224), "chartqa": (448, 336)}
"""Of the pictures of the vision tasks, by task."""
DRAWN = 60
"""Pictures of a task that are drawn; those of further examples have a name alone."""
_WRONG = ("Ada", "Bruno", "Clara", "Dora")


def word_problems(n: int, seed: int) -> pd.DataFrame:
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


def word_answers(examples: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """What a model of that skill writes: right, near, off by a factor, or no number at all."""
    rng = np.random.default_rng(seed)
    n = len(examples)
    right, kind = rng.random(n) < skill, rng.integers(0, 40, n)
    factor = np.exp(rng.normal(0, 1.1, n))
    texts = []
    for target, good, how, by in zip(
        examples["target"], right, kind, factor, strict=True
    ):
        answer = int(target.split()[-1])
        off = answer + int(how) % 3 - 1 if how < 12 else int(answer * by)
        wrong = {
            0: "I do not know", 1: f"#### {-answer}", 2: f"#### {answer * 10}",
            3: f"#### {answer * 100}", 4: f"#### {answer / 10:.1f}", 5: "",
        }.get(int(how), f"#### {off}")  # fmt: skip
        texts.append(
            (f"So {answer}" if how % 20 == 7 else target.strip()) if good else wrong
        )
    return as_completions(examples, texts)


def dialogues(n: int, seed: int) -> pd.DataFrame:
    """Dialogues and their summaries, of which a third hold a number: uid, prompt, target."""
    examples = SAMSum(source="synthetic").examples("test", seed, n)
    rows = [(example.uid, example.prompt, example.target) for example in examples]
    return pd.DataFrame(rows, columns=["uid", "prompt", "target"])


def dialogue_answers(examples: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
    """What a model of that skill writes: the summary with some words left out or replaced."""
    rng = np.random.default_rng(seed)
    texts = []
    for target in examples["target"]:
        words = [
            word if good else str(rng.choice(_WRONG))
            for word, good in zip(
                target.split(), rng.random(99) < skill + 0.3, strict=False
            )
        ]
        texts.append(
            " ".join(words[: int(rng.integers(4, 12))]) if rng.random() > 0.02 else ""
        )
    return as_completions(examples, texts)


def vision_problems(task: str, n: int, seed: int, folder: Path) -> pd.DataFrame:
    """uid, prompt, target and the path of a picture in the folder."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for at in range(n):
        hour, minute = int(rng.integers(1, 13)), 5 * int(rng.integers(0, 12))
        bars = [int(bar) for bar in rng.integers(2, 40, 5)]
        picture = folder / f"{task}-{at}.png"
        if at < DRAWN:
            draw_picture(picture, at, SIZES[task])
        if task == "clock_time":
            prompt, target = (
                "What time does the clock show?\nAnswer: ",
                f"{hour}:{minute:02d}",
            )
        else:
            which = int(rng.integers(0, 5))
            prompt = (
                f"Question: What is the value of the bar {'ABCDE'[which]}, counted in thousands "
                "of $ and $ alone?\nAnswer: "
            )
            target = str(bars[which])
        rows.append((f"{task}-{at:05d}", prompt, target, str(picture)))
    return pd.DataFrame(rows, columns=["uid", "prompt", "target", "image"])


def vision_answers(examples: pd.DataFrame, skill: float, seed: int) -> pd.DataFrame:
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
    return as_completions(examples, texts, [len(text) > 8 for text in texts])
