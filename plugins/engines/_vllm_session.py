"""A running vLLM engine: which weights are loaded in it, and requests for one checkpoint a call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smmd_bench.contracts import Checkpoint, Completion, EngineSettings, Images, Progress
from smmd_bench.decoding.canary_check import check_canary
from smmd_bench.encoding.prompts import expanded_lengths, text_after_images
from smmd_bench.models.checkpoints import require_room, require_safetensors, stop_token_ids
from smmd_bench.training.canary import canary_images

from ._vllm_requests import run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from vllm import LLM
    from vllm.lora.request import LoRARequest

MOST_LOGPROB_TOKEN_IDS = 128
"""vLLM's limit for `logprob_token_ids`, the cheaper way to the probabilities of chosen tokens."""


class VllmSession:
    """A running engine, which weights are loaded in it, and which checkpoint was verified last.

    `note` is said once, to the first progress of a call.
    """

    def __init__(
        self,
        llm: LLM,
        base: Path,
        settings: EngineSettings,
        context: int,
        note: str | None = None,
    ) -> None:
        from smmd_bench.models.loading import load_tokenizer

        self._llm = llm
        self._base = base
        self._settings = settings
        self._context = context
        self._tokenizer = load_tokenizer(base)
        self._stop = stop_token_ids(base, self._tokenizer)
        self._weights = base
        self._current: Checkpoint | None = None
        self._adapters: dict[Path, int] = {}
        self._broken: str | None = None
        self._note = note

    def close(self) -> None:
        """Shut the engine down; the session cannot be used any more."""
        self._broken = "its engine was closed"
        self._llm.llm_engine.engine_core.shutdown()
        del self._llm

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
        if self._note is not None and progress is not None:
            progress(self._note, 0, 0)
            self._note = None
        from vllm import SamplingParams

        self._require_room(prompts, images, max_new_tokens)
        adapter = self._activate(checkpoint)
        params = SamplingParams(
            temperature=0.0,
            max_tokens=max_new_tokens,
            stop_token_ids=self._stop,
            detokenize=False,
        )
        outputs = run(
            self._llm, prompts, images, params, adapter, f"decode {checkpoint.name}", progress
        )
        token_ids = [tuple(output.outputs[0].token_ids) for output in outputs]
        texts = self._tokenizer.batch_decode(
            [list(row) for row in token_ids], skip_special_tokens=True
        )
        return [
            Completion(text, row, str(output.outputs[0].finish_reason))
            for text, row, output in zip(texts, token_ids, outputs, strict=True)
        ]

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
        from vllm import SamplingParams

        self._require_room(prefixes, images, 1)
        chosen = [int(token) for token in token_ids]
        if len(chosen) <= MOST_LOGPROB_TOKEN_IDS:
            how: dict[str, Any] = {"logprob_token_ids": chosen}
        else:
            how = {"allowed_token_ids": chosen, "logprobs": len(chosen)}
        params = SamplingParams(
            temperature=0.0, max_tokens=1, detokenize=False, flat_logprobs=True, **how
        )
        adapter = self._activate(checkpoint)
        outputs = run(
            self._llm, prefixes, images, params, adapter, f"probe {checkpoint.name}", progress
        )
        column = {token: index for index, token in enumerate(chosen)}
        log_p = np.full((len(outputs), len(chosen)), np.nan)  # [n, N]
        for row, output in zip(log_p, outputs, strict=True):
            found = output.outputs[0].logprobs
            for token, value in zip(found.token_ids, found.logprobs, strict=True):
                if token in column:  # the sampled token comes too
                    row[column[token]] = value
        if np.isnan(log_p).any():
            raise RuntimeError("vLLM left out log-probabilities that were asked for.")
        p = np.exp(log_p - log_p.max(axis=1, keepdims=True, initial=-np.inf))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def log_probabilities(
        self,
        sequences: Sequence[Sequence[int]],
        checkpoint: Checkpoint,
        *,
        images: Images | None = None,
    ) -> list[list[float]]:
        """For each sequence, log p of every token after the first, over the whole vocabulary; with
        images, of every token after the last image."""
        self._require_room(sequences, images, 1)
        return self._score(sequences, images, self._activate(checkpoint), checkpoint)

    def engine_with(self, checkpoint: Checkpoint) -> LLM:
        """vLLM's own object with the weights of the base or of a full checkpoint in it, for a
        library that takes one; until the next call of this session."""
        if checkpoint.kind == "lora":
            raise ValueError(f"'{checkpoint.name}' is an adapter: merge it first.")
        self._activate(checkpoint)
        return self._llm

    def _score(
        self,
        sequences: Sequence[Sequence[int]],
        images: Images | None,
        adapter: LoRARequest | None,
        of: Checkpoint,
        last: Sequence[int] | None = None,
    ) -> list[list[float]]:
        """Log p of the last tokens of each sequence; without `last`, of all that follow the first
        or the last image. One request a token, the way that decoding takes: with LoRA enabled,
        `prompt_logprobs` fails on a CPU, because the head's LoRA layer expects one row a request.
        """
        from vllm import SamplingParams

        placeholder = self._processor.image_token_id if images else None
        counts = last or [text_after_images(ids, placeholder) for ids in sequences]
        starts = [len(ids) - count for ids, count in zip(sequences, counts, strict=True)]
        ends = [(k, end) for k, ids in enumerate(sequences) for end in range(starts[k], len(ids))]
        params = [
            SamplingParams(
                temperature=0.0,
                max_tokens=1,
                logprob_token_ids=[sequences[k][end]],
                detokenize=False,
            )
            for k, end in ends
        ]
        prefixes = [sequences[k][:end] for k, end in ends]
        files = [images[k] for k, _ in ends] if images else None
        outputs = run(self._llm, prefixes, files, params, adapter, f"score {of.name}", None)
        log_p: list[list[float]] = [[] for _ in sequences]
        for (k, end), output in zip(ends, outputs, strict=True):
            log_p[k].append(output.outputs[0].logprobs[0][sequences[k][end]].logprob)
        return log_p

    def _require_room(
        self, ids: Sequence[Sequence[int]], images: Images | None, new_tokens: int
    ) -> None:
        lengths = expanded_lengths(self._processor if images else None, ids, images)
        require_room(lengths, new_tokens, self._context)

    @cached_property
    def _processor(self) -> Any:
        from smmd_bench.models.processor import load_processor

        return load_processor(self._base, self._settings.min_pixels, self._settings.max_pixels)

    def _activate(self, checkpoint: Checkpoint) -> LoRARequest | None:
        """Make a checkpoint the current one; the adapter that its requests must carry."""
        if self._broken is not None:
            raise RuntimeError(f"This vLLM session cannot go on: {self._broken}.")
        weights = checkpoint.path if checkpoint.kind == "full" else self._base
        if weights != self._weights:
            self._swap(weights, checkpoint)
        adapter = self._adapter(checkpoint) if checkpoint.kind == "lora" else None
        if checkpoint != self._current:
            self._current = None
            if checkpoint.canary is not None:
                canary = checkpoint.canary
                scored = [len(row) for row in canary.log_probabilities]
                images = canary_images(canary)
                seen = self._score(canary.token_ids, images, adapter, checkpoint, scored)
                check_canary(checkpoint, seen, self._settings.dtype)
            self._current = checkpoint
        return adapter

    def _swap(self, weights: Path, checkpoint: Checkpoint) -> None:
        """Load other weights into the running engine; drop all that was made with the old ones."""
        if checkpoint.kind == "full":
            require_safetensors(checkpoint)
        self._broken = f"loading the weights of '{checkpoint.name}' ({weights}) failed half-way"
        self._current = None
        self._llm.collective_rpc("reload_weights", kwargs={"weights_path": str(weights)})
        self._llm.model_config.model = str(self._base)  # where it looks for the processor
        self._llm.apply_model(_pack_embeddings)
        self._llm.llm_engine.reset_encoder_cache()
        if not self._llm.reset_prefix_cache():
            raise RuntimeError("vLLM did not reset its prefix cache after a change of weights.")
        self._weights = weights
        self._broken = None

    def _adapter(self, checkpoint: Checkpoint) -> LoRARequest:
        from vllm.lora.request import LoRARequest

        if not self._settings.adapters:
            raise ValueError(
                f"'{checkpoint.name}' is an adapter: open the engine with adapters=True."
            )
        require_safetensors(checkpoint)
        number = self._adapters.setdefault(checkpoint.path, len(self._adapters) + 1)
        return LoRARequest(f"adapter-{number}", number, str(checkpoint.path))


def _pack_embeddings(model: Any) -> None:
    """Make the CPU kernels' packed copy of (tied) embeddings anew; without it they answer with the
    weights of before. On a GPU there is no such copy."""
    from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm
    from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding

    for module in model.modules():
        if isinstance(module, VocabParallelEmbedding) and hasattr(module, "cpu_linear"):
            dispatch_cpu_unquantized_gemm(module, remove_weight=False)
