"""Synthetic clocks as PNG files in the cache folder, drawn when they are first asked for.

All 14,400 are half a minute of one core's time (benchmarks/README.md).
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

from smmd_bench.contracts import cache_folder

from ._clock_drawing import FaceStyle, draw_clock
from ._clock_index import Clock
from ._picture_files import draw_all, is_drawn, save_png

DRAWING = 1
"""Version of the pictures: raise it when one pixel changes."""


@cache
def drawn_by() -> str:
    """What a pixel may depend on: our version, Pillow's, and matplotlib's for its fonts."""
    return f"v{DRAWING}-pillow{version('pillow')}-matplotlib{version('matplotlib')}"


def picture_files(clocks: Sequence[Clock], seed: int, *, rotate: bool) -> list[Path]:
    """The file of each clock, drawn where it is not there yet; safe in several processes.

    seed: of the 100 faces, and of the quarter turns where `rotate`.
    """
    root = cache_folder() / "clock_time" / f"{drawn_by()}-seed{seed}{'-rotated' * rotate}"
    paths = [root / clock.folder / f"{clock.face}.png" for clock in clocks]
    missing = [pair for pair in zip(clocks, paths, strict=True) if not is_drawn(pair[1])]
    of_face = defaultdict(list)  # a face is drawn once
    for clock, path in missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        of_face[clock.face].append((clock, path))
    draw_all(partial(_draw_face, seed, rotate), list(of_face.values()), len(missing))
    return paths


def _draw_face(seed: int, rotate: bool, clocks: Sequence[tuple[Clock, Path]]) -> None:
    style = task_face(seed, clocks[0][0].face)
    for clock, path in clocks:
        turns = quarter_turns(seed, clock) if rotate else 0
        save_png(draw_clock(style, clock.hour, clock.minute, turns), path, compress_level=1)


def task_face(seed: int, face: int) -> FaceStyle:
    """The style of one of the task's faces, 0..99."""
    return FaceStyle(f"clock_time {seed} {face}")


def quarter_turns(seed: int, clock: Clock) -> int:
    """How often a rotated picture is turned by 90 degrees: 0 to 3, drawn by its own seed."""
    return random.Random(f"turns {seed} {clock.folder} {clock.face}").randrange(4)
