"""What the sessions of both engines share: their calls, and which checkpoint is the current one.

Whenever another checkpoint becomes the current one, its canary is read first, so that nothing is
answered with other weights.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smmd_bench.contracts import (
    Checkpoint,
    Completion,
    EngineSettings,
    Images,
    Progress,
)
from smmd_bench.decoding.canary_check import check_canary
from smmd_bench.encoding.prompts import expanded_lengths
from smmd_bench.models.checkpoints import (
    at_most_positions,
    require_room,
    require_safetensors,
    stop_token_ids,
)
from smmd_bench.models.tokenizers import load_processor, load_tokenizer
from smmd_bench.training.canary_texts import canary_images

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rows:
    """Token ids, the images of each row, and how many tokens each has with its images.

    `report(done)` is told how many rows are done.
    """

    ids: Sequence[Sequence[int]]
    images: Images
    lengths: Sequence[int]
    report: Callable[[int], None]


class CheckpointSession(ABC):
    """A started engine, the checkpoint that it runs, and the calls of `EngineSession`."""

    def __init__(self, base: Path, settings: EngineSettings) -> None:
        self._base, self._settings = base, settings
        self._context = at_most_positions(base, settings.max_model_length)
        self._tokenizer = load_tokenizer(base)
        self._stop = stop_token_ids(base, self._tokenizer)
        self._current: Checkpoint | None = None

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        checkpoint: Checkpoint,
        *,
        max_new_tokens: int,
        images: Images | None = None,
        progress: Progress | None = None,
    ) -> list[Completion]:
        rows = self._rows(
            prompts, images, max_new_tokens, progress, f"decode {checkpoint.name}"
        )
        self._use(checkpoint)
        return self._generate(rows, max_new_tokens)

    def next_token_probabilities(
        self,
        prefixes: Sequence[Sequence[int]],
        token_ids: Sequence[int],
        checkpoint: Checkpoint,
        *,
        images: Images | None = None,
        progress: Progress | None = None,
    ) -> NDArray[np.float64]:
        rows = self._rows(prefixes, images, 1, progress, f"probe {checkpoint.name}")
        self._use(checkpoint)
        return self._probabilities(rows, [int(token) for token in token_ids])

    def likeliest_tokens(
        self,
        prefixes: Sequence[Sequence[int]],
        checkpoint: Checkpoint,
        *,
        most: int,
        images: Images | None = None,
        progress: Progress | None = None,
    ) -> list[dict[int, float]]:
        rows = self._rows(prefixes, images, 1, progress, f"beams of {checkpoint.name}")
        self._use(checkpoint)
        return self._likeliest(rows, most)

    @abstractmethod
    def _generate(self, rows: Rows, max_new_tokens: int) -> list[Completion]:
        """`generate` with the current checkpoint."""

    @abstractmethod
    def _probabilities(
        self, rows: Rows, token_ids: Sequence[int]
    ) -> NDArray[np.float64]:
        """`next_token_probabilities` with the current checkpoint."""

    @abstractmethod
    def _likeliest(self, rows: Rows, most: int) -> list[dict[int, float]]:
        """`likeliest_tokens` with the current checkpoint."""

    @abstractmethod
    def _score(self, rows: Rows, counts: Sequence[int]) -> list[list[float]]:
        """Log p of the last tokens of each row, as many as `counts` says."""

    @abstractmethod
    def _load(self, checkpoint: Checkpoint) -> None:
        """Put the weights of a checkpoint in place."""

    def _use(self, checkpoint: Checkpoint) -> None:
        """Make a checkpoint the current one. Raises RuntimeError where its canary fails."""
        if checkpoint == self._current:
            return
        # If loading or the canary fails, it is not known which weights are there.
        self._current = None
        if checkpoint.kind != "base":
            require_safetensors(checkpoint)
        self._load(checkpoint)

        canary = checkpoint.canary
        if canary is not None:
            images = canary_images(canary)
            rows = self._rows(canary.token_ids, images, 0)
            counts = [len(row) for row in canary.log_probabilities]
            scores = self._score(rows, counts)
            error = check_canary(checkpoint, scores, self._settings.dtype)
            _LOG.info("canary of %s: off by at most %.2g", checkpoint.name, error)
        self._current = checkpoint

    def _rows(
        self,
        ids: Sequence[Sequence[int]],
        images: Images | None,
        new: int,
        progress: Progress | None = None,
        what: str = "",
    ) -> Rows:
        """Raises UserError where a row and `new` tokens do not fit the context."""
        lengths = expanded_lengths(self._processor if images else None, ids, images)
        require_room(lengths, new, self._context)

        told = progress or (lambda *_: None)
        # A row without images has an empty list of them, so that nothing below asks for None.
        images = images or [()] * len(ids)
        return Rows(ids, images, lengths, lambda done: told(what, done, len(ids)))

    @cached_property
    def _processor(self) -> Any:
        return load_processor(
            self._base, self._settings.min_pixels, self._settings.max_pixels
        )
