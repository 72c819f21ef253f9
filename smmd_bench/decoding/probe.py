"""Digit probes: what a model believes about the next number, given the true text before it.

For every numeric token of a target the model reads the prompt and the target up to that token, and
answers with its distribution over V_num: softmax(logits[V_num]). Each such prefix is a request of
its own. One pass over a whole target would do the same work, but vLLM 0.32 gives chosen tokens'
log-probabilities at every prompt position only in its Model Runner V2 (`prompt_logprob_token_ids`),
and there, on a CPU, not with LoRA; `prompt_logprobs=-1` sends the whole vocabulary at each (17 s
against 3.6 ms a request), and a top-k leaves most of V_num out. Prefixes of one example
share their beginning, images and all, which the engine's prefix cache computes once.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from itertools import accumulate, islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..contracts import (
    Checkpoint,
    EngineSession,
    Example,
    Images,
    NumericVocabulary,
    Progress,
)

BLOCK = 8192
"""Prefixes whose distributions are held at a time: 64 MiB at N = 1000."""
OUTSIDE = -1
"""What stands for a token outside the answer, as those of a rationale."""
_DIGIT = re.compile("[0-9]")

_DISTRIBUTION = (
    "p_target",
    "maximum",
    "argmax_value",
    "mean",
    *(f"p{d}" for d in range(10)),
)


def probe(
    session: EngineSession,
    checkpoint: Checkpoint,
    prompts_ids: Sequence[Sequence[int]],
    targets_ids: Sequence[Sequence[int]],
    uids: Sequence[str],
    vocabulary: NumericVocabulary,
    *,
    answer_digits: Sequence[Sequence[int]],
    images: Images | None = None,
    full_vectors: int = 500,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """One row a numeric token of a target.

    uid; digit (0: the first numeric token of the target), position (its index in the target);
    answer_digit (0: the token begins with the first digit of the final answer, 1: with the second
    ...; -1: it stands outside the answer, as in a rationale); target_value. Of the distribution p
    over V_num: p_target, maximum, argmax_value, mean (the expected value), p0..p9 (the mass of the
    tokens whose value begins with that decimal digit: at N = 10 p itself), and vector (p, for the
    first `full_vectors` examples; else null).
    `answer_digits` are those of every token of each target; `images` are those of each prompt.
    """
    token_ids = vocabulary.token_ids.tolist()
    values = np.asarray(vocabulary.values, dtype=np.float64)  # [N]
    index_of = {token: index for index, token in enumerate(token_ids)}
    where = _find_numeric(targets_ids, index_of)  # M of them
    numeric_tokens = [targets_ids[e][at] for e, _, at in where]
    # [M]
    targets = np.array([index_of[token] for token in numeric_tokens], dtype=np.int64)

    reduced = [np.empty((0, len(_DISTRIBUTION)))]
    vectors: list[list[float] | None] = []
    for start in range(0, len(where), BLOCK):
        block = where[start : start + BLOCK]
        prefixes = [[*prompts_ids[e], *targets_ids[e][:at]] for e, _, at in block]
        pictures = [images[e] for e, _, _ in block] if images else None
        report = None
        if progress is not None:
            report = shifted(progress, start, len(where))
        # [m, N]
        p = session.next_token_probabilities(
            prefixes, token_ids, checkpoint, images=pictures, progress=report
        )

        reduced.append(_reduce(p, targets[start : start + BLOCK], values))
        for row, (example, _, _) in zip(p, block, strict=True):
            vectors.append(row.tolist() if example < full_vectors else None)

    places = np.array(where, dtype=np.int64).reshape(-1, 3)
    frame = pd.DataFrame(places[:, 1:], columns=["digit", "position"])
    uid_column = [uids[e] for e, _, _ in where]
    frame.insert(0, "uid", uid_column)
    digits = [answer_digits[e][at] for e, _, at in where]
    frame["answer_digit"] = np.array(digits, dtype=np.int64)
    frame["target_value"] = values[targets]
    frame[list(_DISTRIBUTION)] = np.concatenate(reduced)  # [M, 14]
    frame["vector"] = pd.Series(vectors, dtype=object, index=frame.index)
    return frame


def _find_numeric(
    targets_ids: Sequence[Sequence[int]], numeric: Container[int]
) -> list[tuple[int, int, int]]:
    """Example, digit and position of each numeric token of the targets."""
    where = []
    for example, target_ids in enumerate(targets_ids):
        positions = [at for at, token in enumerate(target_ids) if token in numeric]
        where += [(example, digit, at) for digit, at in enumerate(positions)]
    return where


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
    digits_of: dict[int, int] = {int(tokenizer.eos_token_id): 0}
    pairs = zip(examples, targets_ids, strict=True)
    return [
        _answer_digits(tokenizer, example, ids, digits_of) for example, ids in pairs
    ]


def _answer_digits(
    tokenizer: Any, example: Example, ids: Sequence[int], digits_of: dict[int, int]
) -> list[int]:
    """`digits_of` remembers how many digits a token holds."""
    if example.answer is None:
        return [OUTSIDE] * len(ids)
    for token in ids:
        if token not in digits_of:
            digits_of[token] = len(_DIGIT.findall(tokenizer.decode([token])))
    counts = [digits_of[token] for token in ids]
    outside = 0
    if example.answer_start:
        outside = sum(counts) - len(
            _DIGIT.findall(example.target[example.answer_start :])
        )

    # [n + 1], the digits of the target before each token.
    digits_before = accumulate(counts, initial=-outside)
    return [max(number, OUTSIDE) for number in islice(digits_before, len(ids))]


def _reduce(
    p: NDArray[np.float64], targets: NDArray[np.int64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The columns of `_DISTRIBUTION` of p [m, N]: [m, 14]."""
    best, rows = p.argmax(axis=1), np.arange(len(p))
    numbers = p[rows, targets], p[rows, best], values[best], p @ values
    # [N], significant digits; 0 has 0
    leading = [int(f"{abs(value):e}"[0]) for value in values]
    return np.column_stack([*numbers, p @ np.eye(10)[leading]])


def shifted(progress: Progress, start: int, total: int) -> Progress:
    """`progress` for a block that begins at `start`."""
    return lambda what, done, _: progress(what, start + done, total)
