"""Relaxed accuracy by the rule of lm-eval's chartqa, which reads numbers with `float`.

Ported from lm-eval 0.4.13, tasks/chartqa/utils.py, itself after mistral-evals: our prompt ends in
"Answer:", so the completion is what follows lm-eval's "answer:". What is more than a number is
compared as text: "12 million", "~5", '"372532"' and "4014/2" are wrong by it.
"""

from __future__ import annotations

import re
import string

TOLERANCE = 0.05
_LABEL = re.compile(r"([aA]nswer)\**:\**")
_MARKDOWN = re.compile(r"[*_\[\]\(\)]")
_ENDS = frozenset(string.punctuation) - {"%"}


def lm_eval_relaxed(completion: str, target: str) -> bool:
    """Whether a completion is right by lm-eval: within 5 % of a number, or else the same text."""
    answer = _final_answer(completion)
    if not answer:
        return False
    answer, target = _preprocessed(answer), _preprocessed(target)
    found, wanted = _number(answer), _number(target)
    if found is not None and wanted is not None:
        return _near(*found, *wanted)
    if target.isalpha() and len(target) == 1 and answer:  # an option: A, B, C
        return answer[0].lower() == target.lower()
    return answer.rstrip(string.punctuation).lower() == target.lower()


def _final_answer(completion: str) -> str:
    """The first line with text after the last "answer:", without Markdown."""
    text = _LABEL.sub(r"\1:", f"answer:{completion}")
    at = text.lower().rfind("answer:") + len("answer:")
    lines = (line.strip() for line in text[at:].split("\n"))
    return _MARKDOWN.sub("", next((line for line in lines if line), ""))


def _preprocessed(text: str) -> str:
    if any(character.isdigit() for character in text):
        while text and (text[-1] in _ENDS or text[-1].isspace()):
            text = text[:-1]
        return text.replace(",", "").replace("$", "")
    quoted = text.startswith(('"', "'")) and text.endswith(text[0])
    return text[1:-1] if quoted else text


def _number(text: str) -> tuple[float, bool] | None:
    """What `float` reads, and whether a percent sign follows it."""
    text = text.strip()
    try:
        return float(text.rstrip("%")), text.endswith("%")
    except ValueError:
        return None


def _near(found: float, found_percent: bool, wanted: float, wanted_percent: bool) -> bool:
    """Within 5 %, as they are or with one of the percentages as a share."""
    pairs = [(found, wanted)]
    if found_percent or wanted_percent:
        pairs.append((found / 100 if found_percent else found, wanted))
        pairs.append((found, wanted / 100 if wanted_percent else wanted))
    return any(abs(a - b) / max(abs(b), 1e-10) <= TOLERANCE for a, b in pairs)
