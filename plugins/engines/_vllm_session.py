"""A running vLLM engine: which weights are loaded in it, and requests for one checkpoint a call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smmd_bench.contracts import Checkpoint, Completion, EngineSettings, Progress
from smmd_bench.scoring.canary import check_canary
from smmd_bench.scoring.checkpoints import require_room, require_safetensors, stop_token_ids

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from vllm import LLM, RequestOutput, SamplingParams
    from vllm.lora.request import LoRARequest

MOST_LOGPROB_TOKEN_IDS = 128
"""vLLM's limit for `logprob_token_ids`, the cheaper way to the probabilities of chosen tokens."""
IN_FLIGHT = 2048
"""Requests that wait in the engine at a time: enough for full batches."""


class VllmSession:
    """A running engine, which weights are loaded in it, and which checkpoint was verified last."""

    def __init__(self, llm: LLM, base: Path, settings: EngineSettings, context: int) -> None:
        from smmd_bench.training.models import load_tokenizer

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
        progress: Progress | None = None,
    ) -> list[Completion]:
        """Greedy completions of tokenised prompts, in order; stops at the end-of-sequence token."""
        from vllm import SamplingParams

        require_room(prompts, max_new_tokens, self._context)
        adapter = self._activate(checkpoint)
        params = SamplingParams(
            temperature=0.0,
            max_tokens=max_new_tokens,
            stop_token_ids=self._stop,
            detokenize=False,
        )
        outputs = self._run(prompts, params, adapter, f"decode {checkpoint.name}", progress)
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
        progress: Progress | None = None,
    ) -> NDArray[np.float64]:
        """softmax over `token_ids` of the next token's logits after each prefix: [n, N]."""
        import numpy as np
        from vllm import SamplingParams

        require_room(prefixes, 1, self._context)
        chosen = [int(token) for token in token_ids]
        if len(chosen) <= MOST_LOGPROB_TOKEN_IDS:
            how: dict[str, Any] = {"logprob_token_ids": chosen}
        else:
            how = {"allowed_token_ids": chosen, "logprobs": len(chosen)}
        params = SamplingParams(
            temperature=0.0, max_tokens=1, detokenize=False, flat_logprobs=True, **how
        )
        adapter = self._activate(checkpoint)
        outputs = self._run(prefixes, params, adapter, f"probe {checkpoint.name}", progress)
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
        self, sequences: Sequence[Sequence[int]], checkpoint: Checkpoint
    ) -> list[list[float]]:
        """For each sequence, log p of every token after the first, over the whole vocabulary."""
        require_room(sequences, 1, self._context)
        return self._score(sequences, self._activate(checkpoint), checkpoint)

    def _score(
        self, sequences: Sequence[Sequence[int]], adapter: LoRARequest | None, of: Checkpoint
    ) -> list[list[float]]:
        """One request a token, the way that decoding takes: with LoRA enabled, `prompt_logprobs`
        fails on a CPU, because the head's LoRA layer expects one row a request."""
        from vllm import SamplingParams

        prefixes = [sequence[:end] for sequence in sequences for end in range(1, len(sequence))]
        params = [
            SamplingParams(
                temperature=0.0, max_tokens=1, logprob_token_ids=[token], detokenize=False
            )
            for sequence in sequences
            for token in sequence[1:]
        ]
        outputs = iter(self._run(prefixes, params, adapter, f"score {of.name}", None))
        return [
            [next(outputs).outputs[0].logprobs[0][token].logprob for token in sequence[1:]]
            for sequence in sequences
        ]

    def _run(
        self,
        prompts: Sequence[Sequence[int]],
        params: SamplingParams | Sequence[SamplingParams],
        adapter: LoRARequest | None,
        what: str,
        progress: Progress | None,
    ) -> list[RequestOutput]:
        """One request a prompt. Requests left over after an error would join the next batch, with
        another checkpoint: they are aborted."""
        engine = self._llm.llm_engine
        shared = not isinstance(params, Sequence)
        added: list[str] = []
        done: list[RequestOutput] = []
        try:
            while len(done) < len(prompts):
                more = slice(len(added), len(done) + IN_FLIGHT)
                added += self._llm.enqueue(
                    [{"prompt_token_ids": list(prompt)} for prompt in prompts[more]],
                    params if shared else params[more],
                    lora_request=adapter,
                    use_tqdm=False,
                )
                done += [output for output in engine.step() if output.finished]
                if progress is not None:
                    progress(what, len(done), len(prompts))
        except BaseException:
            engine.abort_request(added, internal=True)
            raise
        return sorted(done, key=lambda output: int(output.request_id))

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
                seen = self._score(checkpoint.canary.token_ids, adapter, checkpoint)
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
