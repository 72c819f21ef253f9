"""One function over many items, in several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def map_in_order(
    function: Callable[[Any], Result], items: Iterable[Any], *, processes: int, chunk: int = 1
) -> Generator[Result, None, None]:
    """`function`, which belongs to a module, of every item; an error ends it soon.

    chunk: items that a process takes at a time.
    """
    if processes == 1:
        yield from map(function, items)
        return
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        try:
            yield from pool.map(function, items, chunksize=chunk)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # or leaving would make them all
            raise
