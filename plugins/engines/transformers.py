"""transformers and PEFT in this process: slow, plain, and what vLLM is checked against.

Adapters are put on the base and taken off again, never merged into it; a full checkpoint replaces
the base until the base is asked for again.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import GenerationConfig

from smmd_bench.contracts import Checkpoint, Completion, EngineSession, EngineSettings
from smmd_bench.encoding.data import expand, pad_rows
from smmd_bench.encoding.prompts import decode_texts
from smmd_bench.models.loading import load_model
from smmd_bench.training.faster_steps import fast_products

from ._session import CheckpointSession, Rows

DECODE_TOKENS = 16_384
"""Tokens of a batch when decoding: rows times (longest prompt + new tokens)."""
LOGIT_TOKENS = 2_048
"""Tokens of a batch where logits over the whole vocabulary are kept."""
MOST_ROWS = 256
MOST_ROWS_WITH_IMAGES = 32


@dataclass(frozen=True)
class TransformersEngine:
    """Decodes with `generate` of transformers, on CUDA where there is one."""

    name: ClassVar[str] = "transformers"
    version: ClassVar[int] = 2

    def identity(self) -> Mapping[str, Any]:
        """Name and version of this plugin, and the versions of transformers and PEFT."""
        library = f"{version('transformers')}, peft {version('peft')}"
        return {"name": self.name, "version": self.version, "library": library}

    @contextmanager
    def open(self, base: Path, settings: EngineSettings) -> Iterator[EngineSession]:
        """Load `base`; leaving the context frees it."""
        session = TransformersSession(base, settings)
        try:
            # Of many positions, so that attention stays as it is.
            with fast_products(session._model, DECODE_TOKENS):
                yield session
        finally:
            session.close()
            gc.collect()
            torch.cuda.empty_cache()  # of a GPU that was used


class TransformersSession(CheckpointSession):
    """The model in memory, and the checkpoint that it is."""

    _model: Any
    _weights: Path | None

    def __init__(self, base: Path, settings: EngineSettings) -> None:
        super().__init__(base, settings)
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._has_adapter = False
        self._load_weights(base)

    def close(self) -> None:
        """Free the model; the session cannot be used again."""
        self._model = self._weights = self._current = None

    def _generate(self, rows: Rows, max_new_tokens: int) -> list[Completion]:
        greedy = GenerationConfig(
            do_sample=False,
            num_beams=1,
            max_new_tokens=max_new_tokens,
            eos_token_id=self._stop,
            pad_token_id=self._tokenizer.pad_token_id,
            use_cache=True,
        )

        completions: dict[int, Completion] = {}
        for batch in _batches(rows, DECODE_TOKENS, max_new_tokens):
            inputs = self._inputs(rows, batch)
            prompt_length = inputs["input_ids"].shape[1]
            with torch.inference_mode():
                written = self._model.generate(**inputs, generation_config=greedy)
            new_tokens = written[:, prompt_length:].tolist()  # [B, S]
            for index, row in zip(batch, new_tokens, strict=True):
                completions[index] = self._completion(row, max_new_tokens)
            rows.report(len(completions))
        return [completions[index] for index in range(len(rows.ids))]

    def _probabilities(
        self, rows: Rows, token_ids: Sequence[int]
    ) -> NDArray[np.float64]:
        chosen = torch.tensor(token_ids, device=self._device)  # [N]
        probabilities = np.empty((len(rows.ids), len(chosen)))
        for batch, logits in self._next_token_logits(rows):
            p = logits[:, chosen].double().softmax(-1)  # [B, N]
            probabilities[batch] = p.cpu().numpy()
        return probabilities

    def _likeliest(self, rows: Rows, most: int) -> list[dict[int, float]]:
        likeliest: list[dict[int, float]] = [{} for _ in rows.ids]
        for batch, logits in self._next_token_logits(rows):
            size = min(most, logits.shape[-1])
            log_p, ids = logits.float().log_softmax(-1).topk(size)  # [B, size]
            for index, *row in zip(batch, ids.tolist(), log_p.tolist(), strict=True):
                likeliest[index] = dict(zip(*row, strict=True))
        return likeliest

    def _next_token_logits(self, rows: Rows) -> Iterator[tuple[list[int], Tensor]]:
        """Indices of some rows, and the logits that follow each: [B, V]."""
        number_done = 0
        for batch in _batches(rows, DECODE_TOKENS):
            logits = self._logits(self._inputs(rows, batch), keep=1)
            yield batch, logits[:, -1]
            number_done += len(batch)
            rows.report(number_done)

    def _score(self, rows: Rows, counts: Sequence[int]) -> list[list[float]]:
        scores: list[list[float]] = [[] for _ in rows.ids]
        for batch in _batches(rows, LOGIT_TOKENS):
            inputs = self._inputs(rows, batch)
            longest = max(counts[index] for index in batch)
            # The last logits predict what comes after a row, which nothing scores.
            logits = self._logits(inputs, keep=longest + 1)  # [B, S + 1, V]

            # Rows are padded on the left, so that the last tokens of all stand below one another.
            ids = inputs["input_ids"]  # [B, T]
            first = ids.shape[1] - longest
            tokens = ids[:, first:]  # [B, S]
            log_p = _log_probabilities(logits[:, :-1], tokens).tolist()  # [B, S]
            for index, row in zip(batch, log_p, strict=True):
                start = longest - counts[index]
                scores[index] = row[start:]
        return scores

    def _inputs(self, rows: Rows, batch: Sequence[int]) -> dict[str, Tensor]:
        """What the model takes for some of the rows, padded on the left."""
        # All rows of a batch have images, or none has.
        if rows.images[batch[0]]:
            unpadded = [
                expand(self._processor, rows.ids[i], rows.images[i]) for i in batch
            ]
        else:
            ids = [torch.tensor([list(rows.ids[i])]) for i in batch]
            unpadded = [
                {"input_ids": row, "attention_mask": torch.ones_like(row)}
                for row in ids
            ]
        inputs = pad_rows(unpadded, self._tokenizer.pad_token_id, "left")
        return {name: value.to(self._device) for name, value in inputs.items()}

    def _logits(self, inputs: dict[str, Tensor], keep: int) -> Tensor:
        """Logits at the last `keep` positions: [B, keep, V]."""
        # else the model has its own positions, in 3 dimensions
        if "image_grid_thw" not in inputs:
            positions = (inputs["attention_mask"].cumsum(-1) - 1).clamp(min=0)  # [B, T]
            inputs = {**inputs, "position_ids": positions}
        with torch.inference_mode():
            output = self._model(**inputs, use_cache=False, logits_to_keep=keep)
        logits: Tensor = output.logits
        return logits

    def _completion(self, row: Sequence[int], max_new_tokens: int) -> Completion:
        """Cut after the first stop token: what follows is padding of the batch."""
        end = next((i for i, token in enumerate(row) if token in self._stop), None)
        kept = list(row[:max_new_tokens] if end is None else row[: end + 1])
        (text,) = decode_texts(self._tokenizer, [kept], self._stop)
        return Completion(text, tuple(kept), "length" if end is None else "stop")

    def _load(self, checkpoint: Checkpoint) -> None:
        if self._has_adapter:
            self._model = self._model.unload()
            self._has_adapter = False

        weights = checkpoint.path if checkpoint.kind == "full" else self._base
        if weights != self._weights:
            self._load_weights(weights)
        if checkpoint.kind == "lora":
            from peft import PeftModel

            self._model = PeftModel.from_pretrained(self._model, checkpoint.path).eval()
            self._has_adapter = True

    def _load_weights(self, weights: Path) -> None:
        # The old model goes first: two of them may not fit the memory.
        self._model = self._weights = None
        self._model = load_model(weights, self._settings.dtype).to(self._device)
        # A checkpoint's own defaults may have penalties, which would change greedy answers.
        self._model.generation_config = GenerationConfig()
        self._weights = weights


def _log_probabilities(logits: Tensor, tokens: Tensor) -> Tensor:
    """Log-probabilities of the tokens, [B, S], under logits [B, S, V].

    Those of the whole vocabulary are freed here, before the next batch needs the room.
    """
    tokens = tokens.clamp(max=logits.shape[-1] - 1)  # Mllama's head has no image token
    log_p = logits.float().log_softmax(-1)  # [B, S, V]
    return log_p.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def _batches(rows: Rows, tokens: int, new_tokens: int = 0) -> Iterator[list[int]]:
    """Indices of rows, longest first, in batches of similar lengths that pad little; rows with
    images are apart from those without."""
    for with_images in (True, False):
        order = [i for i, files in enumerate(rows.images) if bool(files) == with_images]
        order.sort(key=lambda index: -rows.lengths[index])
        largest_size = MOST_ROWS_WITH_IMAGES if with_images else MOST_ROWS
        # Rows are padded to the longest of their batch, which is its first.
        start = 0
        while start < len(order):
            longest = rows.lengths[order[start]] + new_tokens
            size = max(1, min(largest_size, tokens // longest))
            yield order[start : start + size]
            start += size
