"""The likeliest completions of a prompt with their probabilities, for rules other than greedy.

A beam search over single tokens: it keeps the `WIDTH` likeliest beginnings and drops those below
`LEAST`. What it finds approximates the distribution of completions from below; the probability that
it covers is in the frame. Each step is one pass over the beginnings that are left, which begin as
their prompt does: an engine with a prefix cache computes that once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ..contracts import Checkpoint, EngineSession, Images, Progress
from ..encoding.prompts import decode_texts
from ..errors import UserError

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 32
"""Beams of a prompt at a time."""
LEAST = 1e-3
"""The probability below which a beginning is dropped."""
BLOCK = 64
"""Prompts that are searched at a time."""

Beam = tuple[float, tuple[int, ...]]
"""log p and the tokens."""


def find_beams(
    session: EngineSession,
    checkpoint: Checkpoint,
    prompts: Sequence[Sequence[int]],
    stop: Collection[int],
    max_new_tokens: int,
    *,
    never: Collection[int] = (),
    images: Images | None = None,
    progress: Progress = lambda *_: None,
) -> list[list[Beam]]:
    """The likeliest completions of each prompt, likeliest first.

    A completion ends with a token of `stop`, or has `max_new_tokens` tokens; none holds a token of
    `never`, such as the placeholder of a picture. The search goes through `BLOCK` prompts at a
    time; `progress` counts those that are done.
    """
    found: list[list[Beam]] = []
    progress("beams", 0, len(prompts))
    for start in range(0, len(prompts), BLOCK):
        block = slice(start, start + BLOCK)
        rows = images[block] if images else None
        found += _search(
            session, checkpoint, prompts[block], stop, max_new_tokens, never=never, images=rows
        )
        progress("beams", len(found), len(prompts))
    return found


def require_beams(engine: str, session: object) -> None:
    """Raise UserError for an engine whose session cannot be searched."""
    if not hasattr(session, "likeliest_tokens"):
        raise UserError(
            f"The engine {engine} has no likeliest_tokens, which --decoders mean and median need: "
            "choose another with --engine."
        )


def _search(
    session: EngineSession,
    checkpoint: Checkpoint,
    prompts: Sequence[Sequence[int]],
    stop: Collection[int],
    max_new_tokens: int,
    *,
    never: Collection[int],
    images: Images | None,
) -> list[list[Beam]]:
    ended: list[list[Beam]] = [[] for _ in prompts]
    live: list[list[Beam]] = [[(0.0, ())] for _ in prompts]
    for _ in range(max_new_tokens):
        where = [(index, beam) for index, beams in enumerate(live) for beam in beams]
        if not where:
            break
        found = session.likeliest_tokens(
            [[*prompts[index], *ids] for index, (_, ids) in where],
            checkpoint,
            most=WIDTH,
            images=[images[index] for index, _ in where] if images else None,
        )
        grown: list[list[Beam]] = [[] for _ in prompts]
        for (index, (log_p, ids)), following in zip(where, found, strict=True):
            allowed = ((t, p) for t, p in following.items() if t not in never)
            grown[index] += [(log_p + more, (*ids, token)) for token, more in allowed]
        for index, beams in enumerate(grown):
            likely = [beam for beam in beams if beam[0] >= math.log(LEAST)]
            kept = sorted([*ended[index], *likely], reverse=True)[:WIDTH]
            ended[index] = [beam for beam in kept if beam[1][-1] in stop]
            live[index] = [beam for beam in kept if beam[1][-1] not in stop]
    return [sorted(beams, reverse=True) for beams in map(list.__add__, ended, live)]


def beams_frame(
    found: Sequence[Sequence[Beam]], uids: Sequence[str], tokenizer: Any, stop: Collection[int]
) -> pd.DataFrame:
    """One row a completion: uid, text (see `decode_texts`), log_probability."""
    import pandas as pd

    flat = [(uid, *beam) for uid, beams in zip(uids, found, strict=True) for beam in beams]
    texts = decode_texts(tokenizer, [ids for *_, ids in flat], stop)
    columns = {"uid": [uid for uid, *_ in flat], "text": texts}
    return pd.DataFrame({**columns, "log_probability": [float(log_p) for _, log_p, _ in flat]})
