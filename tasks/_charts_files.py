"""The pictures of synthetic charts in the cache folder: drawn once, only those asked for.

A picture appears under its name when it is whole, so several processes may draw at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

from smmd_bench.contracts import cache_folder

from ._charts_data import GENERATOR, QUESTIONS_A_CHART, Chart, Question, chart_at
from ._charts_drawing import draw
from ._process_pool import draw_all

_CHUNK = 25
_A_FOLDER = 1000


@cache
def matplotlib_version() -> str:
    """Of the library that draws: pictures of another version may differ in a pixel."""
    return version("matplotlib")


def charts(
    split: str, seed: int, count: int
) -> Iterator[tuple[int, Chart, tuple[Question, ...], Path]]:
    """The first charts of a split, enough for `count` questions, whose pictures are in place."""
    wanted = range(-(-count // QUESTIONS_A_CHART))
    folder = cache_folder() / "chartqa" / f"v{GENERATOR}-{matplotlib_version()}-{split}-seed{seed}"
    paths = [folder.absolute() / f"{index // _A_FOLDER:03}" / f"{index:06}.png" for index in wanted]
    for parent in {path.parent for path in paths}:
        parent.mkdir(parents=True, exist_ok=True)
    there = {
        entry.path
        for parent in {path.parent for path in paths}
        for entry in os.scandir(parent)
        if not entry.name.startswith(".")  # another process is drawing it
        and entry.stat().st_size  # empty: the machine died before the disk had it
    }
    contents = [chart_at(split, seed, index) for index in wanted]
    missing = [
        (chart, style, path)
        for (chart, _, style), path in zip(contents, paths, strict=True)
        if str(path) not in there
    ]
    draw_all(_draw_one, missing, len(missing), _CHUNK)
    for index, ((chart, questions, _), path) in enumerate(zip(contents, paths, strict=True)):
        yield index, chart, questions, path


def _draw_one(item: tuple[Chart, int, Path]) -> None:
    draw(*item)
