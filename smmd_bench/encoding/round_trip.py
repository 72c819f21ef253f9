"""Whether a tokenizer gives back the texts of a task, and the model has its ids."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from ..contracts import Example
from ..errors import UserError, quoted
from .prompts import decode_texts, encode_examples, encode_targets

_SHOWN = 30
_SPACES = re.compile(r"[ \t]+")


def require_round_trip(
    examples: Sequence[Example],
    tokenizer: Any,
    processor: Any | None,
    *,
    chat: bool,
    embeddings: int,
    model: str,
) -> None:
    """Raise UserError for the first prompt or target that does not come back from its token ids, or
    holds an id that the model has not.

    Space at the ends, the number of spaces, and what is beyond ASCII but no digit do not count:
    a tokenizer may not know them.

    embeddings: rows of the model's embedding.
    """
    stop = [tokenizer.eos_token_id]
    prompts = encode_examples(tokenizer, processor, examples, chat=chat)
    targets = encode_targets(tokenizer, [example.target for example in examples], chat=chat)
    images = set() if processor is None else {processor.image_token_id}
    ids = {token for row in [*prompts, *targets] for token in row} - images
    if (largest := max(ids | {tokenizer.pad_token_id}, default=0)) >= embeddings:
        raise UserError(
            f"The tokenizer of {model} gives the id {largest}, and the model's embedding has "
            f"{embeddings} rows: put the model's own tokenizer there, or resize the embedding."
        )
    for rows, kind in ((prompts, "prompt"), (targets, "target")):
        for example, text in zip(examples, decode_texts(tokenizer, rows, stop), strict=True):
            known = text.replace(tokenizer.unk_token or "\0", "")
            wanted, found = _plain(getattr(example, kind)), _plain(known)
            if wanted not in found:
                alike = takewhile(lambda pair: pair[0] == pair[1], zip(wanted, found, strict=False))
                at = max(0, sum(1 for _ in alike) - _SHOWN // 2)
                raise UserError(
                    f"The tokenizer of {model} does not give back the {kind} of example "
                    f"{example.uid}: {quoted(wanted[at : at + _SHOWN])} becomes "
                    f"{quoted(found[at : at + _SHOWN])}: put the model's own tokenizer there."
                )


def _plain(text: str) -> str:
    characters = unicodedata.normalize("NFC", text)
    kept = (c for c in characters if c.isascii() or unicodedata.category(c)[0] == "N")
    return _SPACES.sub(" ", "".join(kept)).strip()
