r"""ChartQA: questions about charts (Masry et al. 2022, arXiv 2203.10244), numeric answers only.

One example: the picture of a bar chart, then "Question: What is the difference in value between
Lamb and Corn?\nAnswer:" -> " 0.57". As in the paper (App. C.1) only examples are kept whose label
is a plain number; how many were dropped, and why, is in the identity and so in the manifest.

Source: the folder "ChartQA Dataset" of github.com/vis-nlp/ChartQA under --data-dir; without one,
*synthetic* charts of our own (`_charts_data`). Quirks of the real data: percentages are written now
as 62, now as 0.62; ratios with up to nine decimals; years are numbers, too; labels with "%" or ","
are dropped, as `float` reads neither.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal

from smmd_bench.contracts import (
    Answer,
    ExactMatch,
    Example,
    Metric,
    Modality,
    ParseFailureRate,
    Split,
    TruncationRate,
    UserError,
    cache_folder,
    data_folder,
    first_number,
    parameter,
    percentage,
    plain_text,
)

from ._charts_data import GENERATOR, QUESTIONS_A_CHART, Chart, chart_at, spell
from ._charts_sources import ChartSource, Row, plain_number
from ._picture_files import draw_missing

FORMAT = 1
"""Version of prompts and targets; `ChartQA.version` is that of reading answers."""
PROMPT = "Question: {question}\nAnswer:"
TOLERANCE = Fraction(1, 20)
_LABEL = re.compile(r"([aA]nswer)\**:\**")
_MARKDOWN = re.compile(r"[*_\[\]\(\)]")
_ENDS = frozenset(string.punctuation) - {"%"}


_METRICS: tuple[Metric, ...] = (
    ExactMatch(), percentage("relaxed_accuracy", "Relaxed (%)", "relaxed"),
    percentage("relaxed_accuracy_lm_eval", "lm-eval relaxed (%)", "relaxed_lm_eval"),
    ParseFailureRate(), TruncationRate(),
)  # fmt: skip


@dataclass(frozen=True)
class ChartQA:
    """Questions about charts whose answers are numbers."""

    name: ClassVar[str] = "chartqa"
    version: ClassVar[int] = 3
    modality: ClassVar[Modality] = Modality.VISION
    max_new_tokens: ClassVar[int] = 16
    paper_sizes: ClassVar[Mapping[Split, int]] = {
        "train": 22_850,
        "validation": 1000,
        "test": 1920,
    }

    source: Literal["auto", "synthetic", "official"] = parameter(
        "auto",
        "synthetic: charts drawn here; official: the folder 'ChartQA Dataset' in --data-dir; "
        "auto: official where there is a --data-dir, else synthetic",
    )

    charts: Literal["all", "plain"] = parameter(
        "all",
        "of those drawn here; plain: up to five bars or points of one series, values printed",
    )

    @property
    def data_label(self) -> Literal["synthetic", "official"]:
        """Which charts these are."""
        if self.source != "auto":
            return self.source
        return "official" if data_folder() else "synthetic"

    @property
    def licence(self) -> str:
        """Of the charts in use."""
        if self.data_label == "synthetic":
            return "synthetic charts, drawn here with matplotlib"
        return "GPL-3.0 (vis-nlp/ChartQA); the charts belong to their publishers"

    @property
    def notes(self) -> tuple[str, ...]:
        """That the charts are not those of ChartQA, where nobody asked for others."""
        if self.source == "auto" and self.data_label == "synthetic":
            return (
                "Charts are drawn here: ChartQA's own need its folder in --data-dir.",
            )
        return ()

    @property
    def sources(self) -> tuple[ChartSource, ...]:
        """Where rows come from; none where the charts are drawn."""
        return () if self.data_label == "synthetic" else (ChartSource(),)

    def resolved(self) -> ChartQA:
        """With the source that `auto` means, where that is a folder: for a spec that is kept."""
        if self.data_label == "synthetic":
            return self
        return replace(self, source=self.data_label)

    def examples(
        self, split: Split, seed: int, limit: int | None = None
    ) -> Sequence[Example]:
        """The first `limit` examples; of the real data in an order that the seed draws, but of the
        test in one that is always the same. Raises UserError."""
        count = self.paper_sizes[split] if limit is None else limit
        plain = self.charts == "plain"
        if self.data_label == "synthetic":
            return _synthetic(split, seed, count, plain=plain)
        if plain:
            raise UserError(
                f"chartqa[source={self.data_label}] has no plain charts: write "
                "chartqa[source=synthetic,charts=plain], or leave charts=plain out."
            )
        (source,) = self.sources
        rows = source.rows(split)

        # The file lists human questions first: a limit would take no others.
        order = "test" if split == "test" else seed
        random.Random(f"chartqa {order}").shuffle(rows)
        return [_example(source.name, split, row) for row in rows[:count]]

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """Of drawn charts generator, library and seed; of real ones what was read."""
        identity: dict[str, Any] = {
            "task": self.name,
            "source": self.data_label,
            "split": split,
            "format": FORMAT,
            "prompt": PROMPT,
        }
        if self.data_label == "synthetic":
            identity["generator"] = GENERATOR
            identity["matplotlib"] = version("matplotlib")
            identity["seed"] = seed
            # Absent for all charts: the parameter is younger than runs that lack it.
            if self.charts != "all":
                identity["charts"] = self.charts
            return identity

        identity |= self.sources[0].identity(split)

        # The order of the test is always the same, so no seed changes it.
        if split != "test":
            identity["seed"] = seed
        return identity

    def parse(self, completion: str) -> Answer | None:
        """The first number; a percent sign, a currency and separators do not count."""
        value = first_number(plain_text(completion))
        return None if value is None else Answer(value)

    def annotate(self, completion: str, target: str) -> Mapping[str, bool]:
        """Whether it is `relaxed`, within 5 % of the target (0 must be met), and `relaxed_lm_eval`.

        The field's measure for ChartQA (Methani et al. 2020; Masry et al. 2022, sec. 5.1), as in
        `relaxed_correctness` of pix2struct's metrics.py, but that "14%" is read as 14, not as 0.14,
        and that 5 % is computed exactly. The other is by lm-eval's rule.
        """
        answer = self.parse(completion)
        truth = self.parse(target)
        relaxed = False
        if answer is not None and truth is not None:
            relaxed = abs(answer.value - truth.value) <= TOLERANCE * abs(truth.value)
        return {
            "relaxed": relaxed,
            "relaxed_lm_eval": lm_eval_relaxed(completion, target),
        }

    def metrics(self) -> Sequence[Metric]:
        """Exact match selects, as in the paper; no MAE, which the largest answer would decide."""
        return _METRICS


def _synthetic(split: Split, seed: int, count: int, *, plain: bool) -> list[Example]:
    """The questions of the first charts of a split, whose pictures are drawn where absent."""
    name = f"v{GENERATOR}-{version('matplotlib')}-{split}{'-plain' * plain}-seed{seed}"
    folder = (cache_folder() / "chartqa" / name).absolute()
    examples, pictures = [], []
    for index in range(-(-count // QUESTIONS_A_CHART)):
        chart, questions, style = chart_at(split, seed, index, plain=plain)
        # A thousand files a folder: some file systems slow down beyond that.
        picture = folder / f"{index // 1000:03}" / f"{index:06}.png"
        pictures.append((chart, style, picture))
        for number, question in enumerate(questions):
            target = spell(question.answer)
            example = Example(
                uid=f"chartqa-{'plain' if plain else 'synthetic'}-{split}-{seed}-{index}-{number}",
                prompt=PROMPT.format(question=question.text),
                target=f" {target}",
                answer=Answer(Fraction(target)),
                images=(picture,),
                attributes={
                    "chart_kind": chart.kind,
                    "question_kind": question.kind,
                    "reading": "printed" if chart.printed else "gridlines",
                    "origin": "synthetic",
                },
            )
            examples.append(example)
    draw_missing(_draw_one, pictures)
    return examples[:count]


def _draw_one(chart: Chart, style: int, path: Path) -> None:
    # imports matplotlib, which listing the tasks need not
    from ._charts_drawing import draw

    draw(chart, style, path)


def _example(source: str, split: Split, row: Row) -> Example:
    value = plain_number(row.label)
    assert value is not None  # no other row is kept
    return Example(
        uid=f"chartqa-{source}-{split}-{row.origin}-{row.number}",
        prompt=PROMPT.format(question=row.query),
        target=f" {row.label.strip()}",
        answer=Answer(value),
        images=(row.image,),
        attributes={"origin": row.origin},
    )


def lm_eval_relaxed(completion: str, target: str) -> bool:
    """Whether a completion is right by lm-eval: within 5 % of a number, or else the same text.

    Ported from lm-eval 0.4.13, tasks/chartqa/utils.py, which reads numbers with `float`; what is
    more than a number is compared as text: "12 million", "~5" and "4014/2" are wrong by it.
    """
    answer = _final_answer(completion)
    if not answer:
        return False
    answer = _preprocess(answer)
    target = _preprocess(target)
    pairs = [*product(_read_floats(answer), _read_floats(target))]
    if pairs:
        return any(abs(a - b) / max(abs(b), 1e-10) <= 0.05 for a, b in pairs)
    if target.isalpha() and len(target) == 1 and answer:  # an option: A, B, C
        return answer[0].lower() == target.lower()
    return answer.rstrip(string.punctuation).lower() == target.lower()


def _final_answer(completion: str) -> str:
    """The first line with text after the last "answer:", without Markdown."""
    text = _LABEL.sub(r"\1:", f"answer:{completion}")
    at = text.lower().rfind("answer:") + len("answer:")
    lines = (line.strip() for line in text[at:].split("\n"))
    return _MARKDOWN.sub("", next((line for line in lines if line), ""))


def _preprocess(text: str) -> str:
    if any(character.isdigit() for character in text):
        while text and (text[-1] in _ENDS or text[-1].isspace()):
            text = text[:-1]
        return text.replace(",", "").replace("$", "")
    quoted = text.startswith(('"', "'")) and text.endswith(text[0])
    return text[1:-1] if quoted else text


def _read_floats(text: str) -> list[float]:
    """What `float` reads, a percentage also as a share; empty: no number."""
    text = text.strip()
    try:
        value = float(text.rstrip("%"))
    except ValueError:
        return []
    return [value, value / 100] if text.endswith("%") else [value]
