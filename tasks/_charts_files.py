"""The pictures of synthetic charts in the cache folder: drawn once, only those asked for.

A picture appears under its name when it is whole, so several processes may draw at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

from smmd_bench.contracts import cache_folder

from ._charts_data import GENERATOR, QUESTIONS_A_CHART, Chart, Question, chart_at
from ._picture_files import draw_all, is_drawn

_CHUNK = 25
_A_FOLDER = 1000


@cache
def matplotlib_version() -> str:
    """Of the library that draws: pictures of another version may differ in a pixel."""
    return version("matplotlib")


def charts(
    split: str, seed: int, count: int, *, plain: bool = False
) -> Iterator[tuple[int, Chart, tuple[Question, ...], Path]]:
    """The first charts of a split, enough for `count` questions, whose pictures are in place."""
    name = f"v{GENERATOR}-{matplotlib_version()}-{split}{'-plain' if plain else ''}-seed{seed}"
    folder = cache_folder() / "chartqa" / name
    made, missing = [], []
    for index in range(-(-count // QUESTIONS_A_CHART)):
        chart, questions, style = chart_at(split, seed, index, plain=plain)
        path = folder.absolute() / f"{index // _A_FOLDER:03}" / f"{index:06}.png"
        made.append((index, chart, questions, path))
        if not is_drawn(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            missing.append((chart, style, path))
    draw_all(_draw_one, missing, len(missing), _CHUNK)
    yield from made


def _draw_one(item: tuple[Chart, int, Path]) -> None:
    from ._charts_drawing import draw  # imports matplotlib, which listing the tasks need not

    draw(*item)
