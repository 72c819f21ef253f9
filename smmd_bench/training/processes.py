"""Several processes that train one cell, a GPU each: what tells them apart, and how they start.

The executor says how many there are in `SMMD_BENCH_PROCESSES`. The job's process is the first and
starts the others, which do the same work on other examples; the first alone reports and writes.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ..contracts.executor import processes

_Decision = TypeVar("_Decision")
Start = Callable[[int, dict[str, str]], Callable[[], str | None]]
"""Starts the process of a rank with this environment; gives what waits for its end and says how it
failed."""


def is_first() -> bool:
    """Whether this is the process that reports and writes."""
    return int(os.environ.get("RANK", 0)) == 0


def decided_by_first(decision: _Decision) -> _Decision:
    """What the first process decided. Every process must call it."""
    from torch import distributed

    if not distributed.is_initialized():
        return decision
    shared = [decision]
    distributed.broadcast_object_list(shared, src=0)
    return shared[0]


def wait_for_all() -> None:
    """Until every process of the training has come here."""
    from torch import distributed

    if distributed.is_initialized():
        distributed.barrier()


@contextmanager
def with_others(start: Start, fail: Callable[[str], None]) -> Iterator[None]:
    """Inside, the others run. fail: called in a thread where one of them died, and does not come
    back: this process may hang in a collective then."""
    if processes() == 1 or not is_first():
        yield
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shared = {"WORLD_SIZE": str(processes()), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
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
    for thread in threads:
        thread.join()
