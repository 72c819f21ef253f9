r"""SAMSum: summaries of messenger dialogues (Gliwa et al. 2019, arXiv 1911.12237).

One example (of our own, not of the corpus): "Summarize the dialogue.\n\nIda: Did you feed the
hens?\nOle: Not yet, going now.\n\nSummary:" -> " Ole is going to feed the hens now."

The licence, CC BY-NC-ND 4.0, forbids to pass changed copies on: nothing of the corpus is here.

Source: train.json, val.json and test.json of the authors' archive (corpus.7z beside the paper on
arXiv), or hub knkarthick/samsum at a pinned commit; the authors' own Samsung/samsum is gone
(huggingface/datasets issue 7573). Quirks: lines end in \r\n or \n; an empty dialogue is kept, so
that n is the paper's. Sizes are those that Gliwa et al. give: the corpus was never read here.

ROUGE-1, ROUGE-2 and ROUGE-L are F1 by Google's rouge-score (Lin 2004, aclanthology W04-1013), with
stemming as in lm-eval's cnn_dailymail; `evaluate.load("rouge")` does not stem, and is lower then.
The paper does not say which it uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal

from smmd_bench.contracts import (
    Answer,
    DataSource,
    Example,
    HubData,
    Metric,
    Modality,
    Percentage,
    Split,
    TruncationRate,
    UserError,
    parameter,
    plain_text,
)

from ._dialogues import GENERATOR, made_dialogue

KINDS = ("rouge1", "rouge2", "rougeL")
FORMAT = 1
"""Version of prompts and targets; `SAMSum.version` is that of reading summaries."""
PROMPT = "Summarize the dialogue.\n\n{dialogue}\n\nSummary:"
UNTIL = "\n\n"
"""A summary is one paragraph: what an untuned model writes after it is not scored."""
SOURCE = DataSource(
    "samsum",
    {
        "train": ("train.json", "train.jsonl", "train.parquet"),
        "validation": ("val.json", "val.jsonl", "validation.json", "validation.jsonl",
                       "validation.parquet"),
        "test": ("test.json", "test.jsonl", "test.parquet"),
    },
    HubData(
        "knkarthick/samsum",
        "f8040674894a743112febaddde2b32264c07bb20",
        None,
        {split: (split,) for split in ("train", "validation", "test")},
    ),
    columns=("summary",),
)  # fmt: skip


def rouge(text: str, reference: str) -> Mapping[str, float]:
    """The F1, from 0 to 1, of a text against one reference: `rouge1`, `rouge2` and `rougeL`."""
    scores = _scorer().score(reference, text)
    return {kind: float(scores[kind].fmeasure) for kind in KINDS}


@cache
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer  # brings in nltk: seconds

    return RougeScorer(list(KINDS), use_stemmer=True)


class RougeL(Percentage):
    """Mean F1 of the longest common subsequence of words, times 100."""

    name: ClassVar[str] = "rougeL"
    label: ClassVar[str] = "ROUGE-L"
    columns: ClassVar[tuple[str, ...]] = ("rougeL",)


class RougeOne(Percentage):
    """Mean F1 of single words, times 100."""

    name: ClassVar[str] = "rouge1"
    label: ClassVar[str] = "ROUGE-1"
    columns: ClassVar[tuple[str, ...]] = ("rouge1",)


class RougeTwo(Percentage):
    """Mean F1 of pairs of neighbouring words, times 100."""

    name: ClassVar[str] = "rouge2"
    label: ClassVar[str] = "ROUGE-2"
    columns: ClassVar[tuple[str, ...]] = ("rouge2",)


METRICS: tuple[Metric, ...] = (RougeL(), RougeOne(), RougeTwo(), TruncationRate())
"""Of summaries: ROUGE-L selects, since it sees the order of the words."""


@dataclass(frozen=True)
class SAMSum:
    """Dialogues with a summary each; scored by ROUGE."""

    name: ClassVar[str] = "samsum"
    version: ClassVar[int] = 3
    modality: ClassVar[Modality] = Modality.TEXT
    max_new_tokens: ClassVar[int] = 128
    paper_sizes: ClassVar[Mapping[Split, int]] = {"train": 14732, "validation": 818, "test": 819}

    source: Literal["corpus", "synthetic"] = parameter(
        "corpus", "corpus: --data-dir or the hub; synthetic: easier dialogues made here"
    )

    @property
    def licence(self) -> str:
        """Of the dialogues in use."""
        if self.source == "synthetic":
            return "synthetic dialogues, made here"
        return "CC BY-NC-ND 4.0 (Samsung R&D Institute Poland): do not redistribute"

    @property
    def sources(self) -> tuple[DataSource, ...]:
        """Where rows come from; none where the dialogues are made."""
        return () if self.source == "synthetic" else (SOURCE,)

    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        """The first `limit` examples, in the order of the file or as the seed makes them."""
        rows: Sequence[Mapping[str, Any]]
        if self.source == "synthetic":
            count = self.paper_sizes[split] if limit is None else limit
            rows = [made_dialogue(split, seed, at) for at in range(count)]
        else:
            rows = SOURCE.rows(split)[:limit]
        return [_example(f"samsum-{split}-{at}", row) for at, row in enumerate(rows)]

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """The digest of the file; generator and seed of made dialogues."""
        same = {"format": FORMAT, "prompt": PROMPT}
        if self.source == "synthetic":
            made = {"source": "synthetic", "generator": GENERATOR, "split": split, "seed": seed}
            return {"task": self.name, **made, **same}
        return {**SOURCE.identity(split), **same}

    def parse(self, completion: str) -> Answer | None:
        """None: a summary is no number, even where it holds some."""
        return None

    def annotate(self, completion: str, target: str) -> Mapping[str, float]:
        """ROUGE of the first paragraph, from 0 to 1: `rouge1`, `rouge2` and `rougeL`."""
        return rouge(plain_text(completion).partition(UNTIL)[0], plain_text(target))

    def metrics(self) -> Sequence[Metric]:
        """ROUGE-L selects; ROUGE-1 and ROUGE-2 stand beside it, in percent as in the paper."""
        return METRICS


def _example(uid: str, row: Mapping[str, Any]) -> Example:
    summary = " ".join(str(row["summary"]).split())
    lacking = "dialogue" if "dialogue" not in row else "" if summary else "summary"
    if lacking:
        raise UserError(f"The row {uid}, counted from 0, has no {lacking}: copy the file again.")
    dialogue = "\n".join(str(row["dialogue"] or "").strip().splitlines())
    return Example(
        uid=uid,
        prompt=PROMPT.format(dialogue=dialogue),
        target=f" {summary}",
        answer=None,
        attributes={"turns": len(dialogue.splitlines())},
    )
