"""ROUGE-1, ROUGE-2 and ROUGE-L as F1, by Google's rouge-score (Lin 2004, aclanthology W04-1013).

Words are stemmed (`use_stemmer=True`), as in lm-eval's cnn_dailymail and in the summarisation
examples of transformers; `evaluate.load("rouge")` stems only where it is asked to, and its
numbers are lower then. The paper does not say which it uses. Values are means of the F1 of each
example; `evaluate` gives the median of resampled means, which differs by their noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from smmd_bench.contracts import Metric, Percentage, TruncationRate

KINDS = ("rouge1", "rouge2", "rougeL")


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
