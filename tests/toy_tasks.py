"""Tasks that read completions and have no examples: they stand for the real ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from smmd_bench.tasks._clock_metrics import TimeGap, TimeGapWrapped
from smmd_bench.tasks._lm_eval_relaxed import lm_eval_relaxed
from smmd_bench.tasks.samsum import SAMSum

from smmd_bench.contracts import (
    Answer,
    ExactMatch,
    Example,
    MeanAbsoluteError,
    Modality,
    ParseFailureRate,
    RSquared,
    Split,
    Task,
    TextMatch,
    TruncationRate,
)

_TIME = re.compile(r"\s*(\d{1,2}):(\d{2})\s*$")


@dataclass(frozen=True)
class _ToyTask:
    """What all of them share."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    modality: ClassVar[Modality] = Modality.TEXT
    max_new_tokens: ClassVar[int] = 32
    paper_sizes: ClassVar[Mapping[Split, int]] = {"train": 10, "validation": 10, "test": 10}

    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        raise NotImplementedError

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        return {"source": "synthetic", "split": split, "seed": seed}

    def parse(self, completion: str) -> Answer | None:
        try:
            return Answer(Fraction(self.number_in(completion)))
        except (ValueError, ZeroDivisionError):
            return None

    def number_in(self, completion: str) -> str:
        return completion.strip()


class ToyArithmetic(_ToyTask):
    """Reads a line as a fraction."""

    name = "arithmetic"

    def metrics(self) -> Any:
        plain = (ExactMatch(), TextMatch(), MeanAbsoluteError(), RSquared())
        return *plain, ParseFailureRate(), TruncationRate()


class ToyWordProblems(_ToyTask):
    """Reads the number after ####, or else the last word."""

    name = "gsm8k"

    def number_in(self, completion: str) -> str:
        return "".join(completion.rpartition("####")[2].split()[-1:])

    def annotate(self, completion: str, target: str) -> Mapping[str, bool]:
        right = completion.split()[-1:] == target.split()[-1:]
        return {"strict": right and "####" in completion, "flexible": right}

    def metrics(self) -> Any:
        shares = Share("strict_match", ("strict",)), Share("flexible_match", ("flexible",))
        errors = MeanAbsoluteError(), RSquared()
        return ExactMatch(), *shares, *errors, ParseFailureRate(), TruncationRate()


class ToyClocks(_ToyTask):
    """Reads `h:mm` as minutes."""

    name = "clock_time"
    modality = Modality.VISION
    max_new_tokens = 8

    def number_in(self, completion: str) -> str:
        found = _TIME.match(completion)
        if found is None or not 1 <= int(found[1]) <= 12 or int(found[2]) > 59:
            return ""
        return str(60 * int(found[1]) + int(found[2]))

    def metrics(self) -> Any:
        return ExactMatch(), TimeGap(), TimeGapWrapped(), ParseFailureRate(), TruncationRate()


class ToyCharts(_ToyTask):
    """Reads a number."""

    name = "chartqa"
    modality = Modality.VISION
    max_new_tokens = 8

    def number_in(self, completion: str) -> str:
        return completion.strip().removeprefix("~")

    def annotate(self, completion: str, target: str) -> Mapping[str, bool]:
        read, truth = self.parse(completion), float(target)
        near = read is not None and abs(float(read) - truth) <= 0.05 * abs(truth)
        return {"relaxed": near, "relaxed_lm_eval": lm_eval_relaxed(completion, target)}

    def metrics(self) -> Any:
        relaxed = Share("relaxed_accuracy", ("relaxed",))
        by_lm_eval = Share("relaxed_accuracy_lm_eval", ("relaxed_lm_eval",))
        return ExactMatch(), relaxed, by_lm_eval, ParseFailureRate(), TruncationRate()


@dataclass(frozen=True)
class Share:
    """The share of a column of booleans, in percent; it stands for lm-eval's rules."""

    name: str
    columns: tuple[str, ...]
    version: ClassVar[int] = 1
    label: ClassVar[str] = "share"
    better: ClassVar[str] = "higher"
    subset: ClassVar[str | None] = None

    def statistic(self, *columns: Any, axis: int = -1) -> Any:
        return 100 * np.mean(columns[0], axis=axis, dtype=np.float64)


def toy_task(spec: str) -> Task:
    """The task that stands for the registered one of this name."""
    toys: dict[str, Task] = {
        "gsm8k": ToyWordProblems(),
        "svamp": ToyWordProblems(),
        "clock_time": ToyClocks(),
        "chartqa": ToyCharts(),
        "samsum": SAMSum(),
    }
    return toys.get(spec.partition("[")[0], ToyArithmetic())
