"""Completions that begin with their prompt, as a pipeline of text generation returns them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ..contracts import Example
from ..contracts.texts import MARKER, opens_reasoning
from ..errors import UserError

_ROLE = r"(?i:system|user|human|assistant|model|response|output|bot|gpt|ai|inst(?:ruction)?)"
# Possessive, so that a long text of blanks does not make it backtrack.
_PREFACE = re.compile(
    rf"(?:\s*+(?:{MARKER}|[#*]*+\ *{_ROLE}\b[*]*+|:))*+\s*+", re.VERBOSE
)
_TURN = re.compile(
    rf"""(?:\s*+(?:{MARKER}
      | [#*]*+\ *(?i:assistant|model|response|output|bot|gpt|ai)\b[*]*+(?:\ *:|(?=\s*[\n<\[]))
    ))*+""",
    re.VERBOSE,
)
"""What a chat template writes between a prompt and its answer."""


def remove_repeated_prompts(
    texts: Sequence[str], examples: Sequence[Example], place: str
) -> list[str]:
    """The completions without the prompt that most of them repeat, also in a chat template.

    `place` names the file. Raises UserError where only some begin with their prompt: whether it is
    a part of these answers, nothing says.
    """
    matches = []
    prefaces: list[str | None] = []
    for text, example in zip(texts, examples, strict=True):
        match = _find_prompt(example.prompt).search(text)
        matches.append(match)
        prefaces.append(text[: match.start()] if match else None)

    # What most have before their prompt is a template's, whatever it is.
    counts = Counter(prefaces)
    repeated = []
    for preface in prefaces:
        is_shared = 2 * counts[preface] > len(texts)
        repeated.append(
            preface is not None and (is_shared or _precedes_prompt(preface))
        )

    # Most must agree: a model may quote the question in some of its answers.
    if any(repeated) and 2 * sum(repeated) <= len(texts):
        raise UserError(
            f"{place}: {sum(repeated):,} of {len(texts):,} completions begin with their prompt "
            f"(the first: {examples[repeated.index(True)].uid}): take it off in the column of "
            "completions, so that none begins with it."
        )
    answers = []
    for text, match, example, repeats in zip(
        texts, matches, examples, repeated, strict=True
    ):
        if match and repeats:
            text = _take_answer(text[match.end() :], example)
        answers.append(text)
    return answers


def _find_prompt(prompt: str) -> re.Pattern[str]:
    """A pattern of the prompt's words: tokenizers and templates change the blanks between them."""
    return re.compile(r"\s+".join(map(re.escape, prompt.split())))


def _precedes_prompt(preface: str) -> bool:
    """Whether special tokens and roles alone stand before a prompt."""
    # A prompt inside of reasoning is a quotation.
    return not opens_reasoning(preface) and _PREFACE.fullmatch(preface) is not None


def _take_answer(text: str, example: Example) -> str:
    """What follows a prompt, without the blank that ends the prompt, and the assistant's role."""
    # The blank is the prompt's, so the answer must not begin with it.
    blank = example.prompt[len(example.prompt.rstrip()) :]
    text = text.removeprefix(blank)
    turn = _TURN.match(text)
    return text[turn.end() :] if turn else text
