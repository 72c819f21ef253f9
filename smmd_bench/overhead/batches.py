"""Synthetic training rows: random tokens, the end of each row supervised, numbers in it."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..contracts import NumericVocabulary
from .settings import OverheadSettings

PREPARATION = 2
"""Steps before those that count: the optimiser's state is there in the second."""
_DIGITS = 4
"""Numeric tokens of a number, where there are other tokens enough to part the numbers."""


def synthetic_vocabulary(vocab_size: int, numeric_tokens: int) -> NumericVocabulary:
    """N tokens with the values 0..N-1, spread over a vocabulary of `vocab_size` tokens."""
    ids = torch.linspace(0, vocab_size - 1, numeric_tokens, dtype=torch.float64).long()  # [N]
    return NumericVocabulary(ids, torch.arange(numeric_tokens, dtype=torch.float64), "synthetic")


def synthetic_rows(settings: OverheadSettings, repeat: int) -> list[dict[str, Any]]:
    """The rows of all steps of a repeat, each {input_ids, attention_mask, labels} of [length].

    They follow from the seed and the repeat alone, so that every loss sees the same.
    """
    rng = np.random.default_rng([settings.seed, repeat])
    vocab_size = settings.config["vocab_size"]
    count, length = (PREPARATION + settings.steps) * settings.batch_size, settings.length
    numeric = synthetic_vocabulary(vocab_size, settings.numeric_tokens).token_ids.numpy()  # [N]
    others = np.setdiff1d(np.arange(vocab_size), numeric)  # [V - N]
    ids = rng.choice(others, (count, length))  # [count, length]
    start = length - settings.supervised_tokens
    places = start + np.flatnonzero(numeric_places(settings.supervised_tokens, settings.numeric))
    ids[:, places] = numeric[_values(rng, settings.numeric_tokens, (count, len(places)))]
    labels = ids.copy()
    labels[:, :start] = -100
    mask = torch.ones(length, dtype=torch.int64)
    return [
        {"input_ids": torch.from_numpy(i), "attention_mask": mask, "labels": torch.from_numpy(y)}
        for i, y in zip(ids, labels, strict=True)
    ]


def _values(rng: np.random.Generator, n: int, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Values below n: of one, two, ... digits alike often, so that NTIL has digits at N = 1000."""
    powers = [10**k for k in range(len(str(n - 1)))]
    bounds = np.array([[0 if low == 1 else low, min(10 * low, n)] for low in powers])  # [digits, 2]
    low, high = bounds[rng.integers(len(bounds), size=shape)].T
    values: NDArray[np.int64] = rng.integers(low.T, high.T)
    return values


def numeric_places(tokens: int, share: float) -> NDArray[np.bool_]:
    """[tokens] which of the supervised tokens of a row are numeric: numbers, parted by others.

    A number has about four tokens; more where there are too few others to part so many numbers,
    up to one number of all the tokens at a share of 1.
    """
    numeric = max(1, round(tokens * share))
    numbers = min(math.ceil(numeric / _DIGITS), tokens - numeric + 1)
    groups = (
        np.array_split(np.full(count, is_number), numbers)  # of about the same size
        for count, is_number in ((numeric, True), (tokens - numeric, False))
    )
    return np.concatenate([part for pair in zip(*groups, strict=True) for part in pair])
