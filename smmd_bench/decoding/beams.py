"""The likeliest completions of a prompt with their probabilities, for rules other than greedy.

A beam search over single tokens: it keeps the `WIDTH` likeliest beginnings and drops those below
`LEAST`. What it finds approximates the distribution of completions from below; the probability that
it covers is in the frame. Each step is one pass over the beginnings that are left, which begin as
their prompt does: an engine with a prefix cache computes that once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
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
    searched: list[list[Beam]] = []
    progress("beams", 0, len(prompts))

    # All beams of a block go on at the same time, so a block bounds what an engine holds.
    for start in range(0, len(prompts), BLOCK):
        block = slice(start, start + BLOCK)
        rows = images[block] if images else None
        searched += _search(
            session,
            checkpoint,
            prompts[block],
            stop,
            max_new_tokens,
            never=never,
            images=rows,
        )
        progress("beams", len(searched), len(prompts))
    return searched


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
        places = [index for index, beams in enumerate(live) for _ in beams]
        beginnings = list(chain.from_iterable(live))
        if not beginnings:
            break
        likeliest = session.likeliest_tokens(
            [
                [*prompts[index], *ids]
                for index, (_, ids) in zip(places, beginnings, strict=True)
            ],
            checkpoint,
            most=WIDTH,
            images=[images[index] for index in places] if images else None,
        )

        # Those that have ended compete with the longer ones for their places.
        candidates = list(map(list, ended))
        for index, beginning, tokens in zip(places, beginnings, likeliest, strict=True):
            candidates[index] += _extend(beginning, tokens, never)
        for index, beams in enumerate(candidates):
            best = sorted(beams, reverse=True)[:WIDTH]
            ended[index] = [beam for beam in best if beam[1][-1] in stop]
            live[index] = [beam for beam in best if beam[1][-1] not in stop]

    # Those that the limit of new tokens cuts count as well, as in greedy decoding.
    pairs = zip(ended, live, strict=True)
    return [sorted([*complete, *cut], reverse=True) for complete, cut in pairs]


def _extend(
    beginning: Beam, tokens: Mapping[int, float], never: Collection[int]
) -> Iterator[Beam]:
    """The beams that go on with one of these tokens, those below `LEAST` dropped."""
    log_p, ids = beginning
    # A longer text is never likelier, so what is dropped here could not come back.
    for token, log_p_of_token in tokens.items():
        extended = log_p + log_p_of_token
        if token not in never and extended >= math.log(LEAST):
            yield extended, (*ids, token)


def beams_frame(
    beams_each: Sequence[Sequence[Beam]],
    uids: Sequence[str],
    tokenizer: Any,
    stop: Collection[int],
) -> pd.DataFrame:
    """One row a completion: uid, text (see `decode_texts`), log_probability."""
    import pandas as pd

    all_beams = list(chain.from_iterable(beams_each))
    uid_of_beam = [
        uid for uid, beams in zip(uids, beams_each, strict=True) for _ in beams
    ]
    return pd.DataFrame(
        {
            "uid": uid_of_beam,
            "text": decode_texts(tokenizer, [ids for _, ids in all_beams], stop),
            "log_probability": [float(log_p) for log_p, _ in all_beams],
        }
    )
