"""How long a cell will roughly take: from its arithmetic and this machine's measured speed."""

from __future__ import annotations

import time
from functools import cache

from .experiment import Cell
from .run_directory import Stage

_CHARACTERS_A_TOKEN = 2.5
_EFFICIENCY = 0.4  # of a large matrix product's speed that a training step reaches
_START_SECONDS = 15.0  # imports, loading, one checkpoint an epoch


def seconds(cell: Cell, stages: list[Stage]) -> float:
    """A rough estimate for the missing stages of a cell, on this machine's CPU."""
    weights = cell.card.parameter_count()
    sample = cell.task_plugin.examples("test", cell.data_seed, min(20, cell.size("test")))
    characters = sum(len(e.prompt) + len(e.target) for e in sample) / max(1, len(sample))
    tokens = characters / _CHARACTERS_A_TOKEN
    total = 0.0
    if "train" in stages and not cell.is_base:
        examples = cell.size("train") * cell.recipe.epochs
        total += _START_SECONDS + 6 * weights * tokens * examples / _flops()
    if "decode" in stages:
        examples = 2 * cell.size("test")  # decoding and probes
        if not cell.is_base:
            examples += cell.size("validation") * cell.recipe.epochs
        total += 2 + 2 * weights * tokens * 2 * examples / _flops()
    return total


def spell_seconds(value: float) -> str:
    """`95` -> "2 min"."""
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.1f} h"


@cache
def _flops() -> float:
    """Floating-point operations a second of a float32 matrix product here, less the overhead."""
    import numpy as np

    size = 1024
    matrix = np.ones((size, size), dtype=np.float32)
    matrix @ matrix
    start = time.perf_counter()
    for _ in range(3):
        matrix @ matrix
    return _EFFICIENCY * 3 * 2 * size**3 / (time.perf_counter() - start)
