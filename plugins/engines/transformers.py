"""transformers and PEFT in this process: slow, plain, and what vLLM is checked against.

Adapters are put on the base and taken off again, never merged into it; a full checkpoint replaces
the base until the base is asked for again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from smmd_bench.contracts import Checkpoint, Completion, EngineSession, EngineSettings, Progress
from smmd_bench.scoring.canary import check_canary
from smmd_bench.scoring.checkpoints import (
    context_length,
    require_room,
    require_safetensors,
    stop_token_ids,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

DECODE_TOKENS = 16_384
"""Tokens of a batch when decoding: rows times (longest prompt + new tokens)."""
LOGIT_TOKENS = 2_048
"""Tokens of a batch where logits over the whole vocabulary are kept."""
MOST_ROWS = 256


@dataclass(frozen=True)
class TransformersEngine:
    """Decodes with `generate` of transformers, on CUDA where there is one."""

    name: ClassVar[str] = "transformers"
    version: ClassVar[int] = 1

    def identity(self) -> Mapping[str, Any]:
        """Name and version of this plugin, and the versions of transformers and PEFT."""
        library = f"{version('transformers')}, peft {version('peft')}"
        return {"name": self.name, "version": self.version, "library": library}

    @contextmanager
    def open(self, base: Path, settings: EngineSettings) -> Iterator[EngineSession]:
        """Load `base`; leaving the context frees it."""
        import torch

        session = TransformersSession(base, settings)
        try:
            yield session
        finally:
            session.close()
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()


class TransformersSession:
    """The model in memory, and the checkpoint that it is."""

    def __init__(self, base: Path, settings: EngineSettings) -> None:
        import torch

        from smmd_bench.training.models import load_tokenizer

        self._base = base
        self._settings = settings
        self._context = context_length(base, settings)
        self._tokenizer = load_tokenizer(base)
        self._stop = stop_token_ids(base, self._tokenizer)
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._weights: Path | None = None
        self._adapter: Path | None = None
        self._current: Checkpoint | None = None
        self._model: Any = None
        self._load(base)

    def close(self) -> None:
        """Drop the model."""
        self._model = self._weights = self._current = None

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        checkpoint: Checkpoint,
        *,
        max_new_tokens: int,
        progress: Progress | None = None,
    ) -> list[Completion]:
        """Greedy completions of tokenised prompts, in order; stops at the end-of-sequence token."""
        import torch
        from transformers import GenerationConfig

        require_room(prompts, max_new_tokens, self._context)
        self._activate(checkpoint)
        greedy = GenerationConfig(
            do_sample=False,
            num_beams=1,
            max_new_tokens=max_new_tokens,
            eos_token_id=self._stop,
            pad_token_id=self._tokenizer.pad_token_id,
            use_cache=True,
        )
        found: dict[int, Completion] = {}
        for batch in _batches(prompts, DECODE_TOKENS, max_new_tokens):
            ids, mask = self._pad([prompts[index] for index in batch])  # [B, T]
            with torch.inference_mode():
                rows = self._model.generate(
                    input_ids=ids, attention_mask=mask, generation_config=greedy
                )[:, ids.shape[1] :].tolist()
            for index, row in zip(batch, rows, strict=True):
                found[index] = self._completion(row, max_new_tokens)
            if progress is not None:
                progress(f"decode {checkpoint.name}", len(found), len(prompts))
        return [found[index] for index in range(len(prompts))]

    def next_token_probabilities(
        self,
        prefixes: Sequence[Sequence[int]],
        token_ids: Sequence[int],
        checkpoint: Checkpoint,
        *,
        progress: Progress | None = None,
    ) -> NDArray[np.float64]:
        """softmax over `token_ids` of the next token's logits after each prefix: [n, N]."""
        import numpy as np
        import torch

        require_room(prefixes, 1, self._context)
        self._activate(checkpoint)
        chosen = torch.tensor([int(token) for token in token_ids], device=self._device)  # [N]
        probabilities = np.empty((len(prefixes), len(chosen)))
        done = 0
        for batch in _batches(prefixes, DECODE_TOKENS):
            ids, mask = self._pad([prefixes[index] for index in batch])  # [B, T]
            with torch.inference_mode():
                logits = self._logits(ids, mask, logits_to_keep=1)[:, -1]  # [B, V]
                probabilities[batch] = logits[:, chosen].double().softmax(-1).cpu().numpy()
            done += len(batch)
            if progress is not None:
                progress(f"probe {checkpoint.name}", done, len(prefixes))
        return probabilities

    def log_probabilities(
        self, sequences: Sequence[Sequence[int]], checkpoint: Checkpoint
    ) -> list[list[float]]:
        """For each sequence, log p of every token after the first, over the whole vocabulary."""
        require_room(sequences, 0, self._context)
        self._activate(checkpoint)
        return self._score(sequences)

    def _score(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        import torch

        found: dict[int, list[float]] = {}
        for batch in _batches(sequences, LOGIT_TOKENS):
            ids, mask = self._pad([sequences[index] for index in batch])  # [B, T]
            with torch.inference_mode():
                log_p = self._logits(ids, mask)[:, :-1].float().log_softmax(-1)  # [B, T-1, V]
                log_p = log_p.gather(-1, ids[:, 1:, None])[..., 0]  # [B, T-1]
            for index, row in zip(batch, log_p.tolist(), strict=True):
                found[index] = row[len(row) + 1 - len(sequences[index]) :]
        return [found[index] for index in range(len(sequences))]

    def _logits(self, ids: Tensor, mask: Tensor, **keep: int) -> Tensor:
        positions = (mask.cumsum(-1) - 1).clamp(min=0)  # [B, T]; padding is on the left
        logits: Tensor = self._model(
            input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False, **keep
        ).logits
        return logits

    def _pad(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Token ids padded on the left, and the mask of what is no padding, both [B, T]."""
        import torch

        width = max(map(len, rows))
        ids = [[self._tokenizer.pad_token_id] * (width - len(row)) + list(row) for row in rows]
        mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
        return torch.tensor(ids, device=self._device), torch.tensor(mask, device=self._device)

    def _completion(self, row: Sequence[int], max_new_tokens: int) -> Completion:
        """Cut after the first stop token: what follows is padding of the batch."""
        end = next((i for i, token in enumerate(row) if token in self._stop), None)
        kept = list(row[:max_new_tokens] if end is None else row[: end + 1])
        text = self._tokenizer.decode(kept, skip_special_tokens=True)
        return Completion(text, tuple(kept), "length" if end is None else "stop")

    def _activate(self, checkpoint: Checkpoint) -> None:
        if checkpoint == self._current:
            return
        self._current = None
        if checkpoint.kind != "base":
            require_safetensors(checkpoint)
        if self._adapter is not None:
            self._model = self._model.unload()
            self._adapter = None
        weights = checkpoint.path if checkpoint.kind == "full" else self._base
        if weights != self._weights:
            self._load(weights)
        if checkpoint.kind == "lora":
            from peft import PeftModel

            self._model = PeftModel.from_pretrained(self._model, checkpoint.path).eval()
            self._adapter = checkpoint.path
        if checkpoint.canary is not None:
            check_canary(checkpoint, self._score(checkpoint.canary.token_ids), self._settings.dtype)
        self._current = checkpoint

    def _load(self, weights: Path) -> None:
        from transformers import GenerationConfig

        from smmd_bench.training.models import load_model

        self._model = self._weights = None
        self._model = load_model(weights, self._settings.dtype).to(self._device)
        self._model.generation_config = GenerationConfig()  # no sampling defaults, no penalties
        self._weights = weights


def _batches(
    rows: Sequence[Sequence[int]], tokens: int, new_tokens: int = 0
) -> Iterator[list[int]]:
    """Indices of rows, longest first, in batches of similar lengths that pad little."""
    order = sorted(range(len(rows)), key=lambda index: -len(rows[index]))
    start = 0
    while start < len(order):
        size = max(1, min(MOST_ROWS, tokens // (len(rows[order[start]]) + new_tokens)))
        yield order[start : start + size]
        start += size
