"""Drawing many pictures into the cache folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from joblib import Parallel, cpu_count, delayed

IN_PROCESS_BELOW = 200
"""Starting processes costs more than drawing so many pictures."""


def draw_all(draw: Callable[..., None], items: Sequence[tuple[Any, ...]]) -> None:
    """Call `draw` with the arguments of every picture, on all cores if there are many."""
    processes = 1 if len(items) < IN_PROCESS_BELOW else cpu_count()
    Parallel(processes)(delayed(draw)(*item) for item in items)
