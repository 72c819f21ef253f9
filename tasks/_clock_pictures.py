"""Synthetic clocks as PNG files in the cache folder, drawn when they are first asked for.

All 14,400 are half a minute of one core's time (benchmarks/README.md).
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from smmd_bench.contracts import cache_folder

from ._clock_drawing import draw_clock
from ._clock_faces import FaceStyle, face_style
from ._clock_index import FACES, Clock
from ._process_pool import draw_all

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
    missing = [
        (clock, path) for clock, path in zip(clocks, paths, strict=True) if not _is_there(path)
    ]
    for folder in {path.parent for _, path in missing}:
        folder.mkdir(parents=True, exist_ok=True)
    jobs: dict[int, _Job] = {}  # a face is drawn once
    for clock, path in missing:
        jobs.setdefault(clock.face, _Job(seed, rotate, [])).clocks.append((clock, path))
    draw_all(_draw, list(jobs.values()), len(missing), chunk=1)
    return paths


@dataclass(frozen=True)
class _Job:
    """Clocks with the same face, and where their pictures go."""

    seed: int
    rotate: bool
    clocks: list[tuple[Clock, Path]]


def _draw(job: _Job) -> None:
    style = task_face(job.seed, job.clocks[0][0].face)
    for clock, path in job.clocks:
        turns = quarter_turns(job.seed, clock) if job.rotate else 0
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        picture = draw_clock(style, clock.hour, clock.minute, turns)
        picture.save(part, "png", compress_level=1)
        part.replace(path)


def _is_there(path: Path) -> bool:
    try:
        return path.stat().st_size > 0  # empty: the machine died before the disk had it
    except FileNotFoundError:
        return False


def task_face(seed: int, face: int) -> FaceStyle:
    """The style of one of the task's faces, 0..99."""
    if not 0 <= face < FACES:
        raise ValueError(f"There is no face {face}.")
    return face_style(f"clock_time {seed} {face}")


def quarter_turns(seed: int, clock: Clock) -> int:
    """How often a rotated picture is turned by 90 degrees: 0 to 3, drawn by its own seed."""
    return random.Random(f"turns {seed} {clock.folder} {clock.face}").randrange(4)
