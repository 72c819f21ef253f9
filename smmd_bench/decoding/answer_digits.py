"""Which tokens of a target belong to its final answer, and with which digit of it they begin."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..contracts import Example

OUTSIDE = -1
"""What stands for a token outside the answer, as those of a rationale."""
_DIGIT = re.compile("[0-9]")


def answer_digits(
    tokenizer: Any, examples: Sequence[Example], targets_ids: Sequence[Sequence[int]]
) -> list[list[int]]:
    """For each token of each target, how many digits of the final answer stand before it.

    0 is the token that begins with the first digit, -1 a token outside the answer. A token without
    a digit has the number of the next one. `Example.answer_start` says where the answer begins; an
    example whose `answer` is None has none. `targets_ids` end with the end-of-sequence token.

    Digits are counted from the end of the target, in its text and in its tokens. This needs no
    character offsets, which some tokenizers do not give, and a rationale that the tokenizer
    rewrites ("½" as "1/2") moves nothing.
    """
    known: dict[int, int] = {int(tokenizer.eos_token_id): 0}
    return [
        _of_target(tokenizer, e, ids, known) for e, ids in zip(examples, targets_ids, strict=True)
    ]


def _of_target(
    tokenizer: Any, example: Example, ids: Sequence[int], known: dict[int, int]
) -> list[int]:
    """`known` remembers how many digits a token holds."""
    if example.answer is None:
        return [OUTSIDE] * len(ids)
    for token in ids:
        if token not in known:
            known[token] = len(_DIGIT.findall(tokenizer.decode([token])))
    counts = [known[token] for token in ids]
    outside = 0
    if example.answer_start:
        outside = sum(counts) - len(_DIGIT.findall(example.target[example.answer_start :]))
    found, before = [], 0
    for count in counts:
        found.append(max(before - outside, OUTSIDE))
        before += count
    return found
