"""Arithmetic examples, drawn in parallel and written to one Parquet file.

Example i is of the level `levels[i % len(levels)]`. The examples are cut in blocks, and each block
has random generators of its own, seeded by what identifies it and by nothing else. So a file does
not depend on the number of processes, and a smaller file is the beginning of a larger one.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from smmd_bench.storage.files import atomic

from ._mixed_expressions import REGIMES, Problem, problems, split_of

EXAMPLES_PER_LEVEL_IN_A_BLOCK = 1000
BLOCKS_IN_A_ROW_GROUP = 20
IN_PROCESS_BELOW = 5000  # starting processes costs more than so many examples
SPLITS = ("train", "validation", "test")
SCHEMA = pa.schema(
    [
        ("uid", pa.string()),
        ("question", pa.string()),
        ("answer", pa.string()),
        ("expression", pa.string()),
        ("level", pa.string()),
        ("operations", pa.int8()),
    ]
)


@dataclass(frozen=True, slots=True)
class _Recipe:
    """What identifies the examples; together with an index it identifies one of them."""

    split: str
    levels: tuple[str, ...]
    seed: int
    operations: tuple[int, int] | None

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise ValueError(f"Unknown split {self.split!r}: choose one of {', '.join(SPLITS)}.")
        unknown = [level for level in self.levels if level not in REGIMES]
        if unknown or not self.levels:
            raise ValueError(
                f"Unknown arithmetic levels {unknown}: choose from {', '.join(REGIMES)}."
                if unknown
                else f"No arithmetic level given: choose from {', '.join(REGIMES)}."
            )

    @property
    def block_size(self) -> int:
        return EXAMPLES_PER_LEVEL_IN_A_BLOCK * len(self.levels)


def generate(
    path: str | os.PathLike[str],
    *,
    count: int,
    split: str,
    levels: Sequence[str],
    seed: int,
    operations: tuple[int, int] | None = None,
    processes: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write `count` examples of a split to `path`; the file appears under this name when complete.

    `progress(done, total)` is called after every block.
    """
    recipe = _Recipe(split, tuple(levels), seed, operations)
    starts = range(0, count, recipe.block_size)
    sizes = [min(recipe.block_size, count - start) for start in starts]
    if processes == 1 or count < IN_PROCESS_BELOW:
        _write(Path(path), map(_block, [recipe] * len(sizes), starts, sizes), count, progress)
        return
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        try:
            blocks = pool.map(_block, [recipe] * len(sizes), starts, sizes)
            _write(Path(path), blocks, count, progress)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # or leaving would draw them all
            raise


def _block(recipe: _Recipe, start: int, size: int) -> pa.RecordBatch:
    """Examples `start` to `start + size`, with `start` the beginning of a block."""
    identity = (recipe.seed, recipe.split, recipe.levels, recipe.operations, start)
    digest = hashlib.blake2b(repr(identity).encode(), digest_size=64).digest()
    rng = random.Random(int.from_bytes(digest[:32], "big"))
    dirichlet_rng = np.random.RandomState(np.frombuffer(digest[32:], dtype="<u4"))
    streams = [
        _of_split(recipe.split, problems(REGIMES[level], rng, dirichlet_rng, recipe.operations))
        for level in recipe.levels
    ]
    rounds = zip(*streams, strict=True)
    drawn = list(islice((problem for one_of_each in rounds for problem in one_of_each), size))
    indices = range(start, start + size)
    return pa.record_batch(
        [
            [f"{recipe.split}-{recipe.seed}-{i}" for i in indices],
            [problem.question for problem in drawn],
            [problem.answer for problem in drawn],
            [problem.expression for problem in drawn],
            [recipe.levels[i % len(recipe.levels)] for i in indices],
            pa.array([problem.operations for problem in drawn], pa.int8()),
        ],
        schema=SCHEMA,
    )


def _of_split(split: str, stream: Iterator[Problem]) -> Iterator[Problem]:
    return (problem for problem in stream if split_of(problem.expression) == split)


def _write(
    path: Path,
    blocks: Iterable[pa.RecordBatch],
    count: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    done = 0
    row_group: list[pa.RecordBatch] = []
    with atomic(path) as temporary, pq.ParquetWriter(temporary, SCHEMA) as writer:
        for block in blocks:
            row_group.append(block)
            done += block.num_rows
            if len(row_group) == BLOCKS_IN_A_ROW_GROUP or done == count:
                writer.write_table(pa.Table.from_batches(row_group, SCHEMA))
                row_group.clear()
            if progress is not None:
                progress(done, count)
