"""Drawing many pictures: in this process where they are few, else in one for every core."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

IN_PROCESS_BELOW = 200
"""Starting processes costs more than drawing so many pictures."""

Item = TypeVar("Item")


def draw_all(
    draw: Callable[[Item], None], items: Sequence[Item], pictures: int, chunk: int
) -> None:
    """Call `draw`, a function of a module, with every item; an error ends it soon.

    pictures: how many they are in all. chunk: items that a process takes at a time.
    """
    processes = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if pictures < IN_PROCESS_BELOW or processes == 1:
        for item in items:
            draw(item)
        return
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        try:
            for _ in pool.map(draw, items, chunksize=chunk):
                pass
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # or leaving would draw them all
            raise
