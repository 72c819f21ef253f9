"""Making many things: in this process where they are few, else in one for every core."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

PICTURES_IN_PROCESS = 200
"""Starting processes costs more than drawing so many pictures."""

Result = TypeVar("Result")


def draw_all(
    draw: Callable[[Any], None], items: Sequence[Any], pictures: int, chunk: int = 1
) -> None:
    """Call `draw`, a function of a module, with every item.

    pictures: how many there are in all. chunk: items that a process takes at a time.
    """
    processes = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    few = pictures < PICTURES_IN_PROCESS
    for _ in map_in_order(draw, items, processes=1 if few else processes or 1, chunk=chunk):
        pass


def map_in_order(
    function: Callable[[Any], Result], items: Iterable[Any], *, processes: int, chunk: int = 1
) -> Generator[Result]:
    """`function`, which belongs to a module, of every item; an error ends it soon."""
    if processes == 1:
        yield from map(function, items)
        return
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        try:
            yield from pool.map(function, items, chunksize=chunk)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # or leaving would make them all
            raise
