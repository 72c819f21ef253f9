"""A running vLLM engine: which weights are loaded in it, and requests for one checkpoint."""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smmd_bench.contracts import Checkpoint, Completion, EngineSettings, Images
from smmd_bench.encoding.images import read_image
from smmd_bench.encoding.prompts import decode_texts

from ._session import CheckpointSession, Rows

if TYPE_CHECKING:
    from vllm import LLM, RequestOutput, SamplingParams
    from vllm.lora.request import LoRARequest

MOST_LOGPROB_TOKEN_IDS = 128
"""vLLM's limit for `logprob_token_ids`, the cheaper way to the probabilities of chosen tokens."""
MOST_ALLOWED_TOKEN_IDS = 1024
"""The limit of its Model Runner V2 for `allowed_token_ids`."""
IN_FLIGHT = 2048
"""Requests that wait in the engine at a time: enough for full batches."""
IN_FLIGHT_WITH_IMAGES = 256
"""The same where each holds its image."""


class VllmSession(CheckpointSession):
    """A running engine, which weights are loaded in it, and which checkpoint was verified last."""

    def __init__(self, llm: LLM, base: Path, settings: EngineSettings) -> None:
        super().__init__(base, settings)
        self._llm = llm
        self._weights = base
        self._adapter: LoRARequest | None = None
        self._adapters: dict[Path, int] = {}
        self._broken: str | None = None

    def close(self) -> None:
        """Shut the engine down; the session cannot be used again."""
        self._broken = "its engine was closed"
        self._llm.llm_engine.engine_core.shutdown()
        del self._llm

    def engine_with(self, checkpoint: Checkpoint) -> LLM:
        """vLLM's own object with the weights of the base or of a full checkpoint in it, for a
        library that takes one; until the next call of this session."""
        if checkpoint.kind == "lora":
            raise ValueError(f"'{checkpoint.name}' is an adapter: merge it first.")
        self._use(checkpoint)
        return self._llm

    def _generate(self, rows: Rows, max_new_tokens: int) -> list[Completion]:
        from vllm import SamplingParams

        params = SamplingParams(
            temperature=0.0,
            max_tokens=max_new_tokens,
            stop_token_ids=self._stop,
            detokenize=False,
        )
        outputs = self._run(rows.ids, rows.images, params, rows.report)
        token_ids = [tuple(output.outputs[0].token_ids) for output in outputs]
        texts = decode_texts(self._tokenizer, token_ids, self._stop)
        return [
            Completion(text, row, str(output.outputs[0].finish_reason))
            for text, row, output in zip(texts, token_ids, outputs, strict=True)
        ]

    def _probabilities(
        self, rows: Rows, token_ids: Sequence[int]
    ) -> NDArray[np.float64]:
        count, step = len(token_ids), MOST_LOGPROB_TOKEN_IDS
        if step < count <= MOST_ALLOWED_TOKEN_IDS:
            parts = [_next_token(allowed_token_ids=token_ids, logprobs=count)]
        else:  # each part is a request of its own, over the whole vocabulary
            starts = range(0, count, step)
            parts = [
                _next_token(logprob_token_ids=token_ids[at : at + step])
                for at in starts
            ]
        outputs = self._run(
            [ids for ids in rows.ids for _ in parts],
            [files for files in rows.images for _ in parts],
            parts * len(rows.ids),
            lambda done: rows.report(done // len(parts)),
        )

        column = {token: index for index, token in enumerate(token_ids)}
        log_p = np.full((len(rows.ids), count), np.nan)  # [n, N]
        for index, output in enumerate(outputs):
            row = log_p[index // len(parts)]  # [N], of the prefix
            for token, value in _log_probabilities(output).items():
                if token in column:  # the sampled token comes too
                    row[column[token]] = value
        if np.isnan(log_p).any():
            raise RuntimeError("vLLM left out log-probabilities that were asked for.")

        # The largest is taken off first: exp of all could round to 0.
        largest = log_p.max(axis=1, keepdims=True, initial=-np.inf)  # [n, 1]
        p = np.exp(log_p - largest)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def _likeliest(self, rows: Rows, most: int) -> list[dict[int, float]]:
        params = _next_token(logprobs=most)
        outputs = self._run(rows.ids, rows.images, params, rows.report)
        return [_log_probabilities(output) for output in outputs]

    def _score(self, rows: Rows, counts: Sequence[int]) -> list[list[float]]:
        """One request a token, the way that decoding takes: with LoRA enabled, `prompt_logprobs`
        fails on a CPU, because the head's LoRA layer expects one row a request."""
        prefixes, images, params = [], [], []
        tokens = []
        for ids, files, count in zip(rows.ids, rows.images, counts, strict=True):
            for end in range(len(ids) - count, len(ids)):
                token = ids[end]
                tokens.append(token)
                prefixes.append(ids[:end])
                images.append(files)
                params.append(_next_token(logprob_token_ids=[token]))

        outputs = self._run(prefixes, images, params)
        log_p = map(_log_probability, outputs, tokens)
        return [list(islice(log_p, count)) for count in counts]

    def _run(
        self,
        prompts: Sequence[Sequence[int]],
        images: Images,
        params: SamplingParams | Sequence[SamplingParams],
        report: Callable[[int], None] = lambda _: None,
    ) -> list[RequestOutput]:
        """One request a prompt, in order; its images are read when it goes in. After an error all
        are aborted: they would join the next batch, with another checkpoint."""
        engine = self._llm.llm_engine
        shared = not isinstance(params, Sequence)
        limit = IN_FLIGHT_WITH_IMAGES if any(images) else IN_FLIGHT
        added: list[str] = []
        finished: list[RequestOutput] = []
        try:
            while len(finished) < len(prompts):
                more = slice(len(added), len(finished) + limit)
                pairs = zip(prompts[more], images[more], strict=True)
                requests = [_make_request(*pair) for pair in pairs]
                added += self._llm.enqueue(
                    requests,
                    params if shared else params[more],
                    lora_request=self._adapter,
                    use_tqdm=False,
                )
                finished += [output for output in engine.step() if output.finished]
                report(len(finished))
        except BaseException:
            engine.abort_request(added, internal=True)
            raise

        # Requests end in any order, and have ascending numbers as they go in.
        return sorted(finished, key=lambda output: int(output.request_id))

    def _use(self, checkpoint: Checkpoint) -> None:
        if self._broken is not None:
            raise RuntimeError(f"This vLLM session cannot go on: {self._broken}.")
        super()._use(checkpoint)

    def _load(self, checkpoint: Checkpoint) -> None:
        weights = checkpoint.path if checkpoint.kind == "full" else self._base
        if weights != self._weights:
            self._swap(weights, checkpoint)
        self._adapter = self._request(checkpoint) if checkpoint.kind == "lora" else None

    def _swap(self, weights: Path, checkpoint: Checkpoint) -> None:
        """Load other weights into the running engine; drop all that was made with the old ones."""
        # Until all of it is done, the engine may hold some weights of each checkpoint.
        self._broken = (
            f"loading the weights of '{checkpoint.name}' ({weights}) failed half-way"
        )
        with plain_path(weights) as folder:
            self._llm.collective_rpc(
                "reload_weights", kwargs={"weights_path": str(folder)}
            )

        # where it looks for the processor
        self._llm.model_config.model = str(self._base)
        self._llm.apply_model(_pack_embeddings)
        self._llm.llm_engine.reset_encoder_cache()
        if not self._llm.reset_prefix_cache():
            raise RuntimeError(
                "vLLM did not reset its prefix cache after a change of weights."
            )

        self._weights = weights
        self._broken = None

    def _request(self, checkpoint: Checkpoint) -> LoRARequest:
        """What a request must carry to be answered with an adapter."""
        from vllm.lora.request import LoRARequest

        if not self._settings.adapters:
            raise ValueError(
                f"'{checkpoint.name}' is an adapter: open the engine with adapters=True."
            )
        # vLLM keeps the weights of an adapter by its number, so each path has one for good.
        number = self._adapters.setdefault(checkpoint.path, len(self._adapters) + 1)
        return LoRARequest(f"adapter-{number}", number, str(checkpoint.path))


def _log_probabilities(output: RequestOutput) -> dict[int, float]:
    """Log p of the next token, by token, of those that a request is for."""
    row: Any = output.outputs[0].logprobs
    return dict(zip(row.token_ids, row.logprobs, strict=True))


def _log_probability(output: RequestOutput, token: int) -> float:
    return _log_probabilities(output)[token]


def _next_token(**log_probabilities: Any) -> SamplingParams:
    """Of a request for log-probabilities of the next token."""
    from vllm import SamplingParams

    return SamplingParams(
        temperature=0.0,
        max_tokens=1,
        detokenize=False,
        flat_logprobs=True,
        **log_probabilities,
    )


def _pack_embeddings(model: Any) -> None:
    """Make the CPU kernels' packed copy of (tied) embeddings again, or they answer with the old
    weights. On a GPU there is no such copy."""
    from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm
    from vllm.model_executor.layers.vocab_parallel_embedding import (
        VocabParallelEmbedding,
    )

    for module in model.modules():
        if isinstance(module, VocabParallelEmbedding) and hasattr(module, "cpu_linear"):
            dispatch_cpu_unquantized_gemm(module, remove_weight=False)


def _make_request(prompt: Sequence[int], files: Sequence[Any]) -> dict[str, Any]:
    """What vLLM takes; it puts the tokens of an image in place of its placeholder."""
    request: dict[str, Any] = {"prompt_token_ids": list(prompt)}
    if files:
        request["multi_modal_data"] = {"image": [read_image(file) for file in files]}
    return request


@contextmanager
def plain_path(folder: Path) -> Iterator[Path]:
    """The folder, or where its path is a pattern to `glob`, a link to it that is none: vLLM reads
    `*`, `?` and `[` in a folder's name as a pattern."""
    if not glob.has_magic(str(folder)):
        yield folder
        return
    with tempfile.TemporaryDirectory() as place:
        link = Path(place) / "checkpoint"
        link.symlink_to(folder.resolve(), target_is_directory=True)
        yield link
