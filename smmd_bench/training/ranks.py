"""Several processes that train one cell, a GPU each: how they start, and how they share weights.

The executor says how many there are in `SMMD_BENCH_PROCESSES`. The job's process is the first and
starts the others, which do the same work on other examples; the first alone reports and writes.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..contracts.executor import is_sharded, processes

if TYPE_CHECKING:
    from torch import Tensor

Start = Callable[[int, dict[str, str]], Callable[[], str | None]]
"""Starts a rank's process with this environment; gives what waits for its end and says how."""


def is_first() -> bool:
    """Whether this is the process that reports and writes."""
    return int(os.environ.get("RANK", 0)) == 0


@contextmanager
def with_others(start: Start, fail: Callable[[str], None]) -> Iterator[None]:
    """Inside, the others run. fail: called in a thread where one of them died, and does not come
    back: this process may hang in a collective then."""
    if processes() == 1 or not is_first():
        yield
        return

    # A port that the system gives is free, also beside other trainings on this machine.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shared = {
        "WORLD_SIZE": str(processes()),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    waits = [
        start(rank, {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(1, processes())
    ]

    os.environ.update({**shared, "RANK": "0", "LOCAL_RANK": "0"})

    def watch(rank: int, wait: Callable[[], str | None]) -> None:
        if (reason := wait()) is not None:
            fail(f"process {rank} of the training failed: {reason}")

    threads = [
        threading.Thread(target=watch, args=(rank, wait), daemon=True)
        for rank, wait in enumerate(waits, 1)
    ]
    for thread in threads:
        thread.start()
    yield

    # The others die with this process, so it waits until each has ended by itself.
    for thread in threads:
        thread.join()


def let_cpu_shard() -> None:
    """Let the next Trainer shard on a CPU, too, where the executor asks for it.

    accelerate shards on accelerators alone, so it is told that there is one. It corrects that when
    it has decided, and asks for none later.
    """
    import torch
    from accelerate.state import DistributedType, PartialState

    if is_sharded() and not torch.cuda.is_available():
        PartialState().distributed_type = DistributedType.MULTI_XPU


def reduce_in_float32(accelerator: Any) -> None:
    """Let a sharded model in bfloat16 add up gradients in float32, as DDP does, and leave its
    outputs as they are; accelerate would make both bfloat16."""
    if is_sharded() and accelerator.mixed_precision == "bf16":
        import torch
        from torch.distributed.fsdp import MixedPrecisionPolicy

        accelerator.state.fsdp_plugin.mixed_precision_policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32
        )


def whole_weights(model: Any) -> dict[str, Tensor] | None:
    """The weights of a sharded model by name, on the CPU of the first process: tied ones once, and
    of an adapter its own. None: each process has all. Every process must call it."""
    if not is_sharded():
        return None
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions,
        get_model_state_dict,
    )

    adapter = hasattr(model, "peft_config")
    options = StateDictOptions(
        full_state_dict=True, cpu_offload=True, ignore_frozen_params=adapter
    )
    weights: dict[str, Tensor] = get_model_state_dict(model, options=options)
    # Of tied parameters only the first name is to be saved.
    first_names = dict(model.named_parameters())
    tied_names = (
        dict(model.named_parameters(remove_duplicate=False)).keys() - first_names.keys()
    )
    return {name: weight for name, weight in weights.items() if name not in tied_names}
