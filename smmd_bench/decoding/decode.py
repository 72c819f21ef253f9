"""Greedy completions of examples, as a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..contracts import Checkpoint, Completion, EngineSession, Example, Progress
from ..encoding.prompts import encode_examples, expanded_lengths, images_of, user_turn
from ..scoring import score

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedTokenizerBase


def decode_checkpoint(
    session: EngineSession,
    checkpoint: Checkpoint,
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerBase,
    max_new_tokens: int,
    progress: Progress | None = None,
    *,
    chat: bool = False,
    processor: Any | None = None,
) -> pd.DataFrame:
    """One row an example, in order, with the prompt tokenised as in training.

    Columns: uid, prompt (with `chat` the user's turn, as the template gets it), target, completion,
    finish_reason, completion_tokens (with the end-of-sequence token), prompt_tokens (with those of
    images), image (the path of the first, if any example has one), then the examples' attributes.
    Examples with images need the processor.
    Raises UserError where an attribute has the name of a column, or a prompt is too long.
    """
    prompts = encode_examples(tokenizer, processor, examples, chat=chat)
    images = images_of(examples)
    completions = session.generate(
        prompts,
        checkpoint,
        max_new_tokens=max_new_tokens,
        images=images,
        progress=progress,
    )

    frame = completions_frame(
        examples, completions, expanded_lengths(processor, prompts, images)
    )
    if chat:
        frame["prompt"] = frame["prompt"].map(user_turn)
    return frame


def completions_frame(
    examples: Sequence[Example],
    completions: Sequence[Completion],
    prompt_tokens: Sequence[int],
) -> pd.DataFrame:
    """The frame of `decode_checkpoint`."""
    columns: dict[str, Sequence[Any]] = {
        "completion": [completion.text for completion in completions],
        "finish_reason": [completion.finish_reason for completion in completions],
        "completion_tokens": [len(completion.token_ids) for completion in completions],
        "prompt_tokens": list(prompt_tokens),
    }
    # Tasks of text have no such column.
    if (images := images_of(examples)) is not None:
        columns["image"] = [str(files[0]) if files else None for files in images]
    return score.completions_frame(examples, columns)
