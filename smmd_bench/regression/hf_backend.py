"""lm-eval's model over transformers, with a checkpoint that we loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import lm_eval.models.huggingface as module
import torch
from lm_eval.models.huggingface import HFLM

from .target import Target
from .watched import CountsTruncated
from .weights import merged_model, require_canary

MODULE = module
_LOGITS_BYTES = 2 << 30
_TYPICAL_TOKENS = 1024


class HFModel(CountsTruncated, HFLM):  # type: ignore[misc]
    """HFLM that counts what it cuts: a prompt and all of its continuation but the last token must
    fit."""

    @property
    def room(self) -> int:  # type: ignore[override]
        """Tokens of prompt and continuation."""
        return int(self.max_length) + 1


@contextmanager
def open_hf(base: str, batch_size: int | None) -> Iterator[Callable[[Target], Any]]:
    """Gives the model of one target after the other; each is loaded once, for all its suites."""

    def load(target: Target) -> HFModel:
        model = merged_model(target)
        if torch.cuda.is_available():
            model = model.to("cuda")
        require_canary(model, target)
        size = batch_size or _batch_size(model.config.get_text_config().vocab_size)
        device = str(model.device)
        return HFModel(
            pretrained=model, tokenizer=base, backend="causal", batch_size=size, device=device
        )

    yield load


def _batch_size(vocabulary: int) -> int:
    """So many rows that the logits of all their positions, and their softmax, take about 2 GiB."""
    return max(1, min(16, _LOGITS_BYTES // (2 * 4 * vocabulary * _TYPICAL_TOKENS)))
