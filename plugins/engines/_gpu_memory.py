"""How much of a GPU's memory vLLM asks for.

vLLM's `gpu_memory_utilization` is a share of *all* memory of the card, by default 0.92. vLLM
refuses to start where less than that is free. Here the share follows from what is free. It holds
weights, activations and the key-value cache; for CUDA graphs a tenth is left, and 1 GiB at least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from smmd_bench.contracts import UserError

SHARE = 0.9
"""The most that is asked for, as a share of what is free."""
RESERVE = 1 << 30
"""The least that is left, in bytes."""


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """`utilization` is what vLLM is given; `note` says in words what it means."""

    utilization: float
    note: str


def request_memory(free: int, total: int) -> MemoryRequest:
    """The share of all memory to ask for where `free` of `total` bytes are free.

    Raises UserError where nothing can be asked for.
    """
    usable = min(SHARE * free, free - RESERVE)
    utilization = math.floor(10_000 * usable / total) / 10_000  # down: vLLM rounds bytes up
    there = f"{_gib(free)} of the GPU's {_gib(total)} GiB are free"
    if utilization <= 0:
        raise UserError(
            f"{there}, too little for vLLM: end other programs on the GPU, or name another GPU in "
            "CUDA_VISIBLE_DEVICES."
        )
    note = f"vLLM asks for {_gib(utilization * total)} GiB: {there}."
    return MemoryRequest(utilization, note)


def gpu_memory_request() -> MemoryRequest | None:
    import torch

    if not torch.cuda.is_available():
        return None
    return request_memory(*torch.cuda.mem_get_info())


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f}"
