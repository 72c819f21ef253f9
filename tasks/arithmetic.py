"""Arithmetic: DeepMind's `arithmetic__mixed` (Saxton et al. 2019, arXiv 1904.01557), made here.

One example: "What is the value of (-13)/(702/420) - -8?" -> "2/9". Answers are integers or
irreducible fractions. Train and validation are equal parts of the levels easy, medium and hard,
the test is `interpolate`, as in the paper (App. C.1: 2M / 10k; the validation split is ours).

Quirks: signs of operands stand in brackets ("(-2)/(-4)") but not after another operator in a sum
("3 - -8"); the answer is drawn first and the expression is built around it, so answers are small.
An expression belongs to train, validation or test by a hash of its text, so that the splits are
disjoint whatever the sizes and seeds.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock
from joblib import Parallel, cpu_count, delayed

from smmd_bench.contracts import (
    Answer,
    ExactMatch,
    Example,
    Metric,
    Modality,
    ParseFailureRate,
    Split,
    TextMatch,
    TruncationRate,
    cache_folder,
    parameter,
    parse_number,
    plain_text,
)
from smmd_bench.contracts.metrics import ERRORS
from smmd_bench.storage.files import atomic

from ._mixed_expressions import REGIMES, problems, split_of

PROMPT = "{question}\nAnswer: "
GENERATOR = 1
"""Version of prompts and targets; `Arithmetic.version` is that of reading answers."""
TRAINING_LEVELS = ("easy", "medium", "hard")
EXAMPLES_PER_LEVEL_IN_A_BLOCK = 1000
BLOCKS_IN_A_ROW_GROUP = 20
METRICS: tuple[Metric, ...] = (
    ExactMatch(),
    TextMatch(),
    *ERRORS,
    ParseFailureRate(),
    TruncationRate(),
)
"""Of answers that are one number."""
IN_PROCESS_BELOW = 5000
"""Starting processes costs more than so many examples."""
SCHEMA = pa.schema(
    [*((name, pa.string()) for name in ("uid", "question", "answer", "expression", "level")),
     ("operations", pa.int8())]
)  # fmt: skip


def _at_least_one_operation(operations: tuple[int, int]) -> str | None:
    low, high = operations
    return None if 1 <= low <= high <= 10 else "must be a range within 1..10"


@dataclass(frozen=True)
class Arithmetic:
    """Mixed arithmetic expressions with integer or rational answers."""

    name: ClassVar[str] = "arithmetic"
    version: ClassVar[int] = 3
    modality: ClassVar[Modality] = Modality.TEXT
    max_new_tokens: ClassVar[int] = 32
    licence: ClassVar[str] = "generated here; the algorithm is Apache-2.0 (DeepMind)"
    paper_sizes: ClassVar[Mapping[Split, int]] = {
        "train": 2_000_000,
        "validation": 10_000,
        "test": 10_000,
    }

    level: Literal["paper", "easy", "medium", "hard", "interpolate", "extrapolate"] = (
        parameter(
            "paper",
            "paper: train on easy+medium+hard, test on interpolate; else that level throughout",
        )
    )
    operations: tuple[int, int] | None = parameter(
        None,
        "number of binary operations, such as 1..2; none: as the reference draws it",
        check=_at_least_one_operation,
    )

    def examples(
        self, split: Split, seed: int, limit: int | None = None
    ) -> Sequence[Example]:
        """The first `limit` examples, generated once and kept as Parquet in the cache folder."""
        count = self.paper_sizes[split] if limit is None else limit
        levels = self._levels(split)
        operations = "all"
        if self.operations is not None:
            low, high = self.operations
            operations = f"{low}-{high}"
        parameters = f"{'+'.join(levels)}-{operations}"
        file = f"v{GENERATOR}-{split}-{parameters}-seed{seed}-{count}.parquet"
        path = cache_folder() / self.name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            # Jobs of one run start at once, and each needs the same file.
            with FileLock(path.with_suffix(".lock")):
                if not path.exists():
                    generate(path, count, split, levels, seed, self.operations)
        return ExampleTable(pq.read_table(path, memory_map=True))

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """Generator version, parameters and seed: generated data needs no digest."""
        return {
            "task": self.name,
            "generator": GENERATOR,
            "split": split,
            "seed": seed,
            "levels": list(self._levels(split)),
            "operations": self.operations,
        }

    def parse(self, completion: str) -> Answer | None:
        """The first line, which must be one number and nothing else."""
        value = parse_number(plain_text(completion).partition("\n")[0])
        return None if value is None else Answer(value)

    def metrics(self) -> Sequence[Metric]:
        """Exact match selects; MAE and R² leave out what cannot be parsed, whose rate is beside."""
        return METRICS

    def _levels(self, split: Split) -> tuple[str, ...]:
        if self.level != "paper":
            return (self.level,)
        return ("interpolate",) if split == "test" else TRAINING_LEVELS


class ExampleTable(Sequence[Example]):
    """Examples read from an Arrow table one at a time: 2M of them take no memory."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            # A range knows how slices with negative ends and steps count.
            rows = range(len(self))[index]
            # Neighbours are a view of the table, which copies nothing.
            if rows.step == 1:
                return ExampleTable(self.table.slice(rows.start, len(rows)))
            return ExampleTable(self.table.take(pa.array(rows, pa.int64())))
        (row,) = self.table.slice(range(len(self))[index], 1).to_pylist()
        return _example(row)

    def __iter__(self) -> Iterator[Example]:
        """In batches: four times as fast as row by row."""
        for batch in self.table.to_batches(max_chunksize=1000):
            yield from map(_example, batch.to_pylist())


def _example(row: Mapping[str, Any]) -> Example:
    return Example(
        uid=row["uid"],
        prompt=PROMPT.format(question=row["question"]),
        target=row["answer"],
        # as generated: an integer, or irreducible
        answer=Answer(Fraction(row["answer"])),
        attributes={"operations": row["operations"], "level": row["level"]},
    )


def generate(
    path: Path,
    count: int,
    split: str,
    levels: Sequence[str],
    seed: int,
    operations: tuple[int, int] | None = None,
    processes: int | None = None,
) -> None:
    """Write `count` examples of a split to a Parquet file, which appears when it is whole.

    Example i is of the level `levels[i % len(levels)]`. Each block has generators of its own: a
    file does not depend on `processes` (None: one a core), and a smaller one begins a larger one.
    """
    make_block = delayed(_block)
    calls = []
    size = EXAMPLES_PER_LEVEL_IN_A_BLOCK * len(levels)
    for start in range(0, count, size):
        indices = range(count)[start : start + size]
        calls.append(make_block(seed, split, tuple(levels), operations, indices))

    # A generator, because 2M examples at once would take gigabytes.
    if count < IN_PROCESS_BELOW:
        processes = 1
    blocks = Parallel(processes or cpu_count(), return_as="generator")(calls)
    with atomic(path) as temporary, pq.ParquetWriter(temporary, SCHEMA) as writer:
        while row_group := list(islice(blocks, BLOCKS_IN_A_ROW_GROUP)):
            writer.write_table(pa.Table.from_batches(row_group, SCHEMA))


def _block(
    seed: int,
    split: str,
    levels: Sequence[str],
    operations: tuple[int, int] | None,
    indices: range,
) -> pa.RecordBatch:
    """The examples of these indices, which are a block or its beginning."""
    key = repr((seed, split, levels, operations, indices.start))
    digest = hashlib.blake2b(key.encode(), digest_size=64).digest()
    rng = random.Random(int.from_bytes(digest[:32], "big"))
    words = np.frombuffer(digest[32:], dtype="<u4")

    # Upstream draws shares by numpy's legacy generator, whose stream is frozen.
    dirichlet_rng = np.random.RandomState(words)
    streams = [
        problems(REGIMES[level], rng, dirichlet_rng, operations) for level in levels
    ]

    # Levels take turns, and all draw from the same two generators: their order is the data.
    rows = []
    for index in indices:
        level = index % len(levels)
        problem = next(streams[level])
        while split_of(problem.expression) != split:
            problem = next(streams[level])
        uid = f"{split}-{seed}-{index}"
        rows.append({"uid": uid, "level": levels[level], **problem._asdict()})
    return pa.RecordBatch.from_pylist(rows, SCHEMA)
