"""Arithmetic examples, drawn in parallel and written to one Parquet file.

Example i is of the level `levels[i % len(levels)]`. Each block of examples has random generators of
its own, seeded by what identifies the block. So a file does not depend on the number of processes,
and a smaller file is the beginning of a larger one.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from smmd_bench.storage.files import atomic

from ._mixed_expressions import REGIMES, problems, split_of
from ._process_pool import map_in_order

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


def generate(
    path: Path,
    *,
    count: int,
    split: str,
    levels: Sequence[str],
    seed: int,
    operations: tuple[int, int] | None = None,
    processes: int = 1,
) -> None:
    """Write `count` examples of a split to `path`; the file appears under this name when complete.

    operations: their smallest and largest number; None: as the reference draws it. Raises
    ValueError for an unknown split or level.
    """
    if split not in SPLITS or not levels or not {*levels} <= {*REGIMES}:
        raise ValueError(
            f"Unknown split {split!r} or levels {[*levels]}: choose from {', '.join(SPLITS)}, and "
            f"from {', '.join(REGIMES)}."
        )
    identity = (seed, split, tuple(levels), operations)
    size = EXAMPLES_PER_LEVEL_IN_A_BLOCK * len(levels)
    ranges = [range(start, min(start + size, count)) for start in range(0, count, size)]
    made = map_in_order(
        partial(_block, *identity), ranges, processes=1 if count < IN_PROCESS_BELOW else processes
    )
    with (
        closing(made) as blocks,
        atomic(path) as temporary,
        pq.ParquetWriter(temporary, SCHEMA) as writer,
    ):
        while row_group := list(islice(blocks, BLOCKS_IN_A_ROW_GROUP)):
            writer.write_table(pa.Table.from_batches(row_group, SCHEMA))


def _block(
    seed: int,
    split: str,
    levels: tuple[str, ...],
    operations: tuple[int, int] | None,
    indices: range,
) -> pa.RecordBatch:
    """The examples of these indices, which are a block or its beginning."""
    identity = (seed, split, levels, operations, indices.start)
    digest = hashlib.blake2b(repr(identity).encode(), digest_size=64).digest()
    rng = random.Random(int.from_bytes(digest[:32], "big"))
    dirichlet_rng = np.random.RandomState(np.frombuffer(digest[32:], dtype="<u4"))
    streams = [problems(REGIMES[level], rng, dirichlet_rng, operations) for level in levels]
    of_split = [filter(lambda p: split_of(p.expression) == split, stream) for stream in streams]
    in_turn = chain.from_iterable(zip(*of_split, strict=True))
    drawn = list(islice(in_turn, len(indices)))
    return pa.record_batch(
        [
            [f"{split}-{seed}-{i}" for i in indices],
            [problem.question for problem in drawn],
            [problem.answer for problem in drawn],
            [problem.expression for problem in drawn],
            [levels[i % len(levels)] for i in indices],
            pa.array([problem.operations for problem in drawn], pa.int8()),
        ],
        schema=SCHEMA,
    )
