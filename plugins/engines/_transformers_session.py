"""A model of transformers in memory, with the weights of one checkpoint at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smmd_bench.contracts import Checkpoint, Completion, EngineSettings, Images, Progress
from smmd_bench.decoding.canary_check import check_canary
from smmd_bench.encoding.prompts import expanded_lengths, text_after_images
from smmd_bench.models.checkpoints import (
    context_length,
    require_room,
    require_safetensors,
    stop_token_ids,
)
from smmd_bench.training.canary import canary_images

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

DECODE_TOKENS = 16_384
"""Tokens of a batch when decoding: rows times (longest prompt + new tokens)."""
LOGIT_TOKENS = 2_048
"""Tokens of a batch where logits over the whole vocabulary are kept."""
MOST_ROWS = 256
MOST_ROWS_WITH_IMAGES = 32


@dataclass(frozen=True)
class _Rows:
    """Token ids, the images of each row, and how many tokens each has with its images."""

    ids: Sequence[Sequence[int]]
    images: Images
    lengths: Sequence[int]


class TransformersSession:
    """The model in memory, and the checkpoint that it is."""

    def __init__(self, base: Path, settings: EngineSettings) -> None:
        import torch

        from smmd_bench.models.loading import load_tokenizer

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
        images: Images | None = None,
        progress: Progress | None = None,
    ) -> list[Completion]:
        """Greedy completions of tokenised prompts, in order; stops at the end-of-sequence token."""
        import torch
        from transformers import GenerationConfig

        rows = self._rows(prompts, images, max_new_tokens)
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
        for batch in _batches(rows, DECODE_TOKENS, max_new_tokens):
            inputs = self._inputs(rows, batch)
            with torch.inference_mode():
                written = self._model.generate(**inputs, generation_config=greedy)
            for index, row in zip(batch, written[:, inputs["input_ids"].shape[1] :], strict=True):
                found[index] = self._completion(row.tolist(), max_new_tokens)
            if progress is not None:
                progress(f"decode {checkpoint.name}", len(found), len(prompts))
        return [found[index] for index in range(len(prompts))]

    def next_token_probabilities(
        self,
        prefixes: Sequence[Sequence[int]],
        token_ids: Sequence[int],
        checkpoint: Checkpoint,
        *,
        images: Images | None = None,
        progress: Progress | None = None,
    ) -> NDArray[np.float64]:
        """softmax over `token_ids` of the next token's logits after each prefix: [n, N]."""
        import numpy as np
        import torch

        rows = self._rows(prefixes, images, 1)
        self._activate(checkpoint)
        chosen = torch.tensor([int(token) for token in token_ids], device=self._device)  # [N]
        probabilities = np.empty((len(prefixes), len(chosen)))
        done = 0
        for batch in _batches(rows, DECODE_TOKENS):
            with torch.inference_mode():
                logits = self._logits(self._inputs(rows, batch), keep=1)[:, -1]  # [B, V]
                probabilities[batch] = logits[:, chosen].double().softmax(-1).cpu().numpy()
            done += len(batch)
            if progress is not None:
                progress(f"probe {checkpoint.name}", done, len(prefixes))
        return probabilities

    def log_probabilities(
        self,
        sequences: Sequence[Sequence[int]],
        checkpoint: Checkpoint,
        *,
        images: Images | None = None,
    ) -> list[list[float]]:
        """For each sequence, log p of every token after the first, over the whole vocabulary; with
        images, of every token after the last image."""
        rows = self._rows(sequences, images, 0)
        self._activate(checkpoint)
        return self._score(rows)

    def _score(self, rows: _Rows) -> list[list[float]]:
        import torch

        placeholder = self._processor.image_token_id if any(rows.images) else None
        scored = [text_after_images(ids, placeholder) for ids in rows.ids]
        found: dict[int, list[float]] = {}
        for batch in _batches(rows, LOGIT_TOKENS):
            inputs = self._inputs(rows, batch)
            most = max(scored[index] for index in batch)
            last = inputs["input_ids"][:, inputs["input_ids"].shape[1] - most :, None]  # [B, S, 1]
            with torch.inference_mode():
                logits = self._logits(inputs, keep=most + 1)[:, :-1]  # [B, S, V]
                known = last.clamp(max=logits.shape[-1] - 1)  # Mllama's head has no image token
                log_p = logits.float().log_softmax(-1).gather(-1, known)[..., 0]  # [B, S]
            for index, row in zip(batch, log_p.tolist(), strict=True):
                found[index] = row[most - scored[index] :]
        return [found[index] for index in range(len(rows.ids))]

    def _rows(self, ids: Sequence[Sequence[int]], images: Images | None, new: int) -> _Rows:
        """Raises UserError where a row and `new` tokens do not fit the context."""
        lengths = expanded_lengths(self._processor if images else None, ids, images)
        require_room(lengths, new, self._context)
        return _Rows(ids, images or [()] * len(ids), lengths)

    def _inputs(self, rows: _Rows, batch: Sequence[int]) -> dict[str, Tensor]:
        """What the model takes for some of the rows, padded on the left."""
        pad = self._tokenizer.pad_token_id
        if rows.images[batch[0]]:
            from smmd_bench.encoding.pictures import expand, pad_rows

            made = [expand(self._processor, rows.ids[i], rows.images[i]) for i in batch]
            inputs = pad_rows(made, pad, "left")
        else:
            import torch

            width = max(rows.lengths[i] for i in batch)
            gaps = [width - rows.lengths[i] for i in batch]
            ids = [[pad] * gap + list(rows.ids[i]) for gap, i in zip(gaps, batch, strict=True)]
            mask = [[0] * gap + [1] * (width - gap) for gap in gaps]
            inputs = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
        return {name: value.to(self._device) for name, value in inputs.items()}

    def _logits(self, inputs: dict[str, Tensor], keep: int) -> Tensor:
        """Logits at the last `keep` positions: [B, keep, V]."""
        if "image_grid_thw" not in inputs:  # else the model has its own positions, in 3 dimensions
            positions = (inputs["attention_mask"].cumsum(-1) - 1).clamp(min=0)  # [B, T]
            inputs = {**inputs, "position_ids": positions}
        logits: Tensor = self._model(**inputs, use_cache=False, logits_to_keep=keep).logits
        return logits

    @cached_property
    def _processor(self) -> Any:
        from smmd_bench.models.processor import load_processor

        return load_processor(self._base, self._settings.min_pixels, self._settings.max_pixels)

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
            canary = checkpoint.canary
            rows = self._rows(canary.token_ids, canary_images(canary), 0)
            check_canary(checkpoint, self._score(rows), self._settings.dtype)
        self._current = checkpoint

    def _load(self, weights: Path) -> None:
        from transformers import GenerationConfig

        from smmd_bench.models.loading import load_model

        self._model = self._weights = None
        self._model = load_model(weights, self._settings.dtype).to(self._device)
        self._model.generation_config = GenerationConfig()  # no sampling defaults, no penalties
        self._weights = weights


def _batches(rows: _Rows, tokens: int, new_tokens: int = 0) -> Iterator[list[int]]:
    """Indices of rows, longest first, in batches of similar lengths that pad little; rows with
    images are apart from those without."""
    for with_images in (True, False):
        chosen = [i for i, files in enumerate(rows.images) if bool(files) == with_images]
        order = sorted(chosen, key=lambda index: -rows.lengths[index])
        most = MOST_ROWS_WITH_IMAGES if with_images else MOST_ROWS
        start = 0
        while start < len(order):
            size = max(1, min(most, tokens // (rows.lengths[order[start]] + new_tokens)))
            yield order[start : start + size]
            start += size
