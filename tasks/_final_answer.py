"""What GSM8K and SVAMP share: the final answer of a step-by-step solution, by our rule and by the
two of lm-eval's gsm8k, and where the problems come from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from smmd_bench.contracts import (
    Answer,
    DataSource,
    ExactMatch,
    Metric,
    Modality,
    ParseFailureRate,
    TruncationRate,
    first_number,
    last_number,
    parameter,
    percentage,
    plain_text,
)
from smmd_bench.contracts.metrics import ERRORS

MARK = "####"
UNTIL = ("Question:", "</s>", "<|im_end|>")
"""Where lm-eval stops generating for gsm8k; models here stop at their end-of-sequence token."""
# lm-eval 0.4.13, tasks/gsm8k/gsm8k.yaml: the filters, and what exact_match leaves out.
_STRICT = re.compile(r"#### (\-?[0-9\.\,]+)")
_FLEXIBLE = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")
# `\A` is ours: it changes no result, and without it a megabyte of digits takes minutes.
_IGNORED = (
    re.compile(","),
    re.compile(r"\$"),
    re.compile(r"(?s)\A.*#### "),
    re.compile(r"\.$"),
)


def first_turn(text: str) -> str:
    """The text up to where lm-eval would have stopped: models may go on to another question."""
    ends = [at for word in UNTIL if (at := text.find(word)) >= 0]
    return text[: min(ends, default=len(text))]


def final_answer(text: str) -> Answer | None:
    """The first number after the last #### of the first turn that a text follows, as in `#### 18
    ####`; without a mark, its last number. None where there is none, or it cannot be read."""
    text = first_turn(plain_text(text))
    _, *marked = text.split(MARK)
    last = next((part for part in reversed(marked) if part.strip(" #\n")), "")
    value = first_number(MARK + last) if marked else last_number(text)
    return None if value is None else Answer(value)


def lm_eval_matches(completion: str, target: str) -> Mapping[str, bool]:
    """Whether a completion is right by lm-eval's two rules: `strict`, the first `#### n`, and
    `flexible`, the last thing that looks like a number."""
    # The first match for strict, the last for flexible: regex_pattern and group_select there.
    completion = first_turn(completion)
    answers = {"strict": "[invalid]", "flexible": "[invalid]"}
    strict = _STRICT.search(completion)
    if strict:
        answers["strict"] = strict[1]
    flexible = _FLEXIBLE.findall(completion)
    if flexible:
        answers["flexible"] = next(filter(None, flexible[-1]), "")

    gold = _plain(target)
    return {rule: _plain(text.strip()) == gold for rule, text in answers.items()}


def _plain(text: str) -> str:
    for pattern in _IGNORED:
        text = pattern.sub("", text)
    return text.lower()


METRICS: tuple[Metric, ...] = (
    ExactMatch(),
    percentage("strict_match", "lm-eval strict (%)", "strict"),
    percentage("flexible_match", "lm-eval flexible (%)", "flexible"),
    *ERRORS,
    ParseFailureRate(),
    TruncationRate(),
)
"""Of word problems: exact match of values selects, lm-eval's two rules stand beside it."""


@dataclass(frozen=True)
class WordProblems:
    """Problems of a data set, its `corpus`, or made here; how their answers are read and scored."""

    version: ClassVar[int] = 3
    modality: ClassVar[Modality] = Modality.TEXT
    max_new_tokens: ClassVar[int] = 512
    corpus: ClassVar[DataSource]
    corpus_licence: ClassVar[str]

    source: Literal["corpus", "synthetic"] = parameter(
        "corpus", "corpus: --data-dir or the hub; synthetic: easier problems made here"
    )

    @property
    def licence(self) -> str:
        """Of the problems in use."""
        if self.source == "synthetic":
            return "synthetic word problems, made here"
        return self.corpus_licence

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """Where rows come from; none where the problems are made."""
        return () if self.source == "synthetic" else (self.corpus,)

    def parse(self, completion: str) -> Answer | None:
        """The number after the last ####, or the last number of all where there is none."""
        return final_answer(completion)

    def annotate(self, completion: str, target: str) -> Mapping[str, bool]:
        """Whether it is right by lm-eval's two rules."""
        return lm_eval_matches(completion, target)

    def metrics(self) -> Sequence[Metric]:
        """Exact match of values selects; lm-eval's strict and flexible rules stand beside it."""
        return METRICS
