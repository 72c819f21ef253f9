"""Requests of a running vLLM engine, as many at a time as keep it busy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from smmd_bench.contracts import Images
from smmd_bench.encoding.images import read_image

if TYPE_CHECKING:
    from vllm import LLM, RequestOutput, SamplingParams
    from vllm.lora.request import LoRARequest

IN_FLIGHT = 2048
"""Requests that wait in the engine at a time: enough for full batches."""
IN_FLIGHT_WITH_IMAGES = 256
"""The same where each holds its image."""


def run(
    llm: LLM,
    prompts: Sequence[Sequence[int]],
    images: Images,
    params: SamplingParams | Sequence[SamplingParams],
    adapter: LoRARequest | None,
    report: Callable[[int], None] = lambda _: None,
) -> list[RequestOutput]:
    """One request a prompt, in order; its images are read when it goes in.

    After an error all are aborted: they would join the next batch, with another checkpoint.
    """
    engine = llm.llm_engine
    shared = not isinstance(params, Sequence)
    most = IN_FLIGHT_WITH_IMAGES if any(images) else IN_FLIGHT
    added: list[str] = []
    done: list[RequestOutput] = []
    try:
        while len(done) < len(prompts):
            more = slice(len(added), len(done) + most)
            added += llm.enqueue(
                [_request(*pair) for pair in zip(prompts[more], images[more], strict=True)],
                params if shared else params[more],
                lora_request=adapter,
                use_tqdm=False,
            )
            done += [output for output in engine.step() if output.finished]
            report(len(done))
    except BaseException:
        engine.abort_request(added, internal=True)
        raise
    return sorted(done, key=lambda output: int(output.request_id))


def _request(prompt: Sequence[int], files: Sequence[Any]) -> dict[str, Any]:
    """What vLLM takes; it puts the tokens of an image in place of its placeholder."""
    request: dict[str, Any] = {"prompt_token_ids": list(prompt)}
    if files:
        request["multi_modal_data"] = {"image": [read_image(file) for file in files]}
    return request
