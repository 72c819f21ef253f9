"""What the canary of a trained checkpoint reads: training prompts with their targets.

Every checkpoint of a task reads the same sequences, whatever its loss and seed, so that recorded
canaries can be compared with one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain, cycle, islice
from typing import Any

from ..contracts import Example
from ..encoding.prompts import encode_prompts, encode_targets
from .canary import CanaryTexts, general_texts

SEQUENCES = 24
MOST_TOKENS = 1024
"""Of all sequences, where that leaves at least `SEQUENCES_WITH_PICTURES`."""
SEQUENCES_WITH_PICTURES = 8
CANDIDATES = 128
"""So many examples, evenly spaced, of which the shortest are read."""
SCORED = 8
"""The first tokens of each target: an engine makes one request a token."""
BLOCK = 128
"""Tokens of a block of vLLM's prefix cache on a CPU; on a GPU it has 16."""
CACHED = 160
"""Tokens of the one long sequence, whose first block a prefix cache holds: keys of other weights
that are left there are seen by the tokens after it."""


def canary_texts(
    examples: Sequence[Example],
    tokenizer: Any,
    processor: Any | None,
    longest: int,
    *,
    chat: bool = False,
) -> CanaryTexts:
    """The shortest of evenly spaced training examples, each up to the first `SCORED` tokens of its
    target; then one long sequence of several examples on end, of at most `longest` tokens.

    With a processor, prompts with one picture read the canary's own in its place, behind the
    general texts. Without any example that fits there are the general texts alone.
    """
    count = min(CANDIDATES, len(examples))
    chosen = [examples[k * len(examples) // count] for k in range(count)]
    if processor is not None:
        chosen = [example for example in chosen if len(example.images) == 1]
    rows = _encode(chosen, tokenizer, processor, chat=chat)
    rows = [row for row in dict.fromkeys(rows) if len(row[0]) <= longest]
    shortest = sorted(rows, key=lambda row: len(row[0]))
    general = general_texts(tokenizer, processor)
    if not rows:
        return general
    if processor is not None:
        ids, scored = zip(*shortest[:SEQUENCES_WITH_PICTURES], strict=True)
        texts = len(general.token_ids) - general.pictures
        return CanaryTexts(
            (*general.token_ids[:texts], *ids), (*general.scored[:texts], *scored), len(ids)
        )
    ids, scored = zip(*_few(shortest), strict=True)
    more = _on_end(shortest, longest)
    return CanaryTexts(ids + more.token_ids, scored + more.scored)


def _encode(
    examples: Sequence[Example], tokenizer: Any, processor: Any | None, *, chat: bool
) -> list[tuple[tuple[int, ...], int]]:
    """Token ids of prompts with the first tokens of their targets, and how many those are."""
    from ..encoding.prompts import encode_examples

    if not examples:
        return []
    if processor is None:
        prompts = encode_prompts(tokenizer, [e.prompt for e in examples], chat=chat)
    else:
        prompts = encode_examples(tokenizer, processor, examples, chat=chat)
    targets = encode_targets(tokenizer, [e.target for e in examples], chat=chat)
    cut = [target[:SCORED] for target in targets]
    return [((*p, *t), len(t)) for p, t in zip(prompts, cut, strict=True) if p]


def _few(rows: Sequence[tuple[tuple[int, ...], int]]) -> list[tuple[tuple[int, ...], int]]:
    ends = accumulate(len(ids) for ids, _ in rows[:SEQUENCES])
    count = sum(end <= MOST_TOKENS for end in ends)
    return list(rows[: max(count, SEQUENCES_WITH_PICTURES)])


def _on_end(rows: Sequence[tuple[tuple[int, ...], int]], longest: int) -> CanaryTexts:
    """The first `CACHED` tokens (at most `longest`) of the sequences one behind the other, again
    from the first where they are few; scored are those after a block of the cache. None where
    every sequence is that long."""
    wanted = min(CACHED, longest)
    if len(rows[0][0]) >= wanted:
        return CanaryTexts((), ())
    ids = tuple(islice(chain.from_iterable(cycle(row for row, _ in rows)), wanted))
    return CanaryTexts((ids,), (min(CACHED - BLOCK, wanted // 2),))
