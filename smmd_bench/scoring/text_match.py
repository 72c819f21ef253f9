"""Whether a completion is the text of its target: normalisation touches the completion alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..contracts import plain_text, without_reasoning

_SPECIAL_TOKENS = re.compile(r"(?:\s*<[|｜][^<>|｜\n]{1,60}[|｜]>|\s*</s>)+\s*\Z")
"""Tokens that end a turn, which no label looks like."""


def match_texts(
    texts: Sequence[str], targets: Sequence[str], *, reasoning: bool = False
) -> list[bool]:
    """Whether each completion is its target, space around both apart.

    A completion that is not the target letter by letter is read by `plain_text`. Where that would
    empty a target or make two different ones equal, as with the labels `[YES]` and `[NO]`, only
    the tokens that end a turn are taken off. A completion that is another target is never this one.
    """
    golds = [target.strip() for target in targets]
    gold_set = {*golds}
    plain_golds = {plain_text(gold, reasoning=True) for gold in gold_set}
    is_literal = "" in plain_golds - gold_set or len(plain_golds) < len(gold_set)

    matches = []
    for text, gold in zip(texts, golds, strict=True):
        whole = text.strip()
        if whole == gold or whole in gold_set:
            matches.append(whole == gold)
        elif is_literal:
            answer = text if reasoning else without_reasoning(text)
            matches.append(_SPECIAL_TOKENS.sub("", answer).strip() == gold)
        else:
            matches.append(plain_text(text, reasoning=reasoning) == gold)
    return matches
