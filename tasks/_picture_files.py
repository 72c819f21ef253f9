"""Drawing many pictures into the cache folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from joblib import Parallel, cpu_count, delayed

IN_PROCESS_BELOW = 200
"""Starting processes costs more than drawing so many pictures."""


def draw_missing(
    draw: Callable[..., None], pictures: Sequence[tuple[Any, ...]]
) -> None:
    """Call `draw` with the arguments of every picture whose file, the last of them, is not there
    yet; on all cores if there are many."""
    missing = [picture for picture in pictures if not picture[-1].is_file()]
    processes = 1 if len(missing) < IN_PROCESS_BELOW else cpu_count()
    Parallel(processes)(delayed(draw)(*picture) for picture in missing)
