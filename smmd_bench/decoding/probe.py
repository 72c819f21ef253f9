"""Digit probes: what a model believes about the next number, given the true text before it.

For every numeric token of a target the model reads the prompt and the target up to that token, and
answers with its distribution over V_num: softmax(logits[V_num]). Each such prefix is a request of
its own. One pass over a whole target would do the same work, but vLLM 0.32 gives chosen tokens'
log-probabilities at every prompt position only in its Model Runner V2 (`prompt_logprob_token_ids`),
and there, on a CPU, not with LoRA; `prompt_logprobs=-1` sends the whole vocabulary at each (17 s
against 3.6 ms a request), and a top-k leaves most of V_num out. Prefixes of one example
share their beginning, images and all, which the engine's prefix cache computes once.
"""

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
    progress: Progress = lambda *_: None,
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
    where = _find_numeric(targets_ids, index_of)  # [M, 3]
    places = [(example, at) for example, _, at in where.tolist()]
    indices = [index_of[targets_ids[example][at]] for example, at in places]
    targets = np.array(indices, dtype=np.int64)  # [M]

    # Where no target has a numeric token, the frame is empty, with all of its columns.
    reduced = [np.empty((0, len(_DISTRIBUTION)))]
    vectors: list[list[float] | None] = []
    for start in range(0, len(places), BLOCK):
        block = slice(start, start + BLOCK)
        prefixes = [[*prompts_ids[e], *targets_ids[e][:at]] for e, at in places[block]]
        pictures = None
        if images:
            pictures = [images[example] for example, _ in places[block]]
        p = session.next_token_probabilities(
            prefixes,
            token_ids,
            checkpoint,
            images=pictures,
            progress=shifted(progress, start, len(places)),
        )  # [m, N]

        reduced.append(_reduce(p, targets[block], values))
        # A whole distribution takes 8 KB at N = 1000, so most examples keep none.
        for row, (example, _) in zip(p, places[block], strict=True):
            vectors.append(row.tolist() if example < full_vectors else None)

    frame = _describe_places(where, uids, answer_digits)
    frame["target_value"] = values[targets]
    frame[list(_DISTRIBUTION)] = np.concatenate(reduced)  # [M, 14]
    frame["vector"] = pd.Series(vectors, dtype=object, index=frame.index)
    return frame


def _find_numeric(
    targets_ids: Sequence[Sequence[int]], numeric: Container[int]
) -> NDArray[np.int64]:
    """Example, digit and position of each numeric token of the targets: [M, 3]."""
    where: list[tuple[int, int, int]] = []
    for example, target_ids in enumerate(targets_ids):
        positions = [at for at, token in enumerate(target_ids) if token in numeric]
        where += [(example, digit, at) for digit, at in enumerate(positions)]
    return np.array(where, dtype=np.int64).reshape(-1, 3)  # [0, 3], too


def _describe_places(
    where: NDArray[np.int64],
    uids: Sequence[str],
    answer_digits: Sequence[Sequence[int]],
) -> pd.DataFrame:
    """The first columns of the frame, for the tokens of `_find_numeric`."""
    frame = pd.DataFrame(where, columns=["uid", "digit", "position"])
    places = where.tolist()
    digits = [answer_digits[example][at] for example, _, at in places]
    frame["answer_digit"] = np.array(digits, dtype=np.int64)
    frame["uid"] = [uids[example] for example, _, _ in places]
    return frame


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
    # The end-of-sequence token is no part of a target's text, whatever it spells.
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
    # Without a rationale the whole target is the answer.
    if example.answer_start:
        answer = example.target[example.answer_start :]
        outside = sum(counts) - len(_DIGIT.findall(answer))

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
