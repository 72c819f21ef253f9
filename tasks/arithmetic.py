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

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, overload

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from smmd_bench.contracts import (
    Answer,
    ExactMatch,
    Example,
    MeanAbsoluteError,
    Metric,
    Modality,
    ParseFailureRate,
    RSquared,
    Split,
    TextMatch,
    TrimmedAbsoluteError,
    TruncationRate,
    cache_folder,
    parameter,
    parse_number,
    plain_text,
)

from ._arithmetic_parquet import generate

PROMPT = "{question}\nAnswer: "
GENERATOR = 1
"""Version of prompts and targets; `Arithmetic.version` is that of reading answers."""
TRAINING_LEVELS = ("easy", "medium", "hard")


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

    level: Literal["paper", "easy", "medium", "hard", "interpolate", "extrapolate"] = parameter(
        "paper", "paper: train on easy+medium+hard, test on interpolate; else that level throughout"
    )
    operations: tuple[int, int] | None = parameter(
        None,
        "number of binary operations, such as 1..2; none: as the reference draws it",
        check=_at_least_one_operation,
    )

    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        """The first `limit` examples, generated once and kept as Parquet in the cache folder."""
        count = self.paper_sizes[split] if limit is None else limit
        levels = self._levels(split)
        operations = "all" if self.operations is None else "{}-{}".format(*self.operations)
        file = f"v{GENERATOR}-{split}-{'+'.join(levels)}-{operations}-seed{seed}-{count}.parquet"
        path = cache_folder() / self.name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with FileLock(path.with_suffix(".lock")):
                if not path.exists():
                    generate(
                        path,
                        count=count,
                        split=split,
                        levels=levels,
                        seed=seed,
                        operations=self.operations,
                        processes=os.cpu_count() or 1,
                    )
        return ExampleTable(pq.read_table(path, memory_map=True))

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """Generator version, parameters and seed: generated data needs no digest."""
        return {
            "task": self.name,
            "generator": GENERATOR,
            "split": split,
            "levels": list(self._levels(split)),
            "operations": self.operations,
            "seed": seed,
        }

    def parse(self, completion: str) -> Answer | None:
        """The first line, which must be one number and nothing else."""
        value = parse_number(plain_text(completion).partition("\n")[0])
        return None if value is None else Answer(value)

    def metrics(self) -> Sequence[Metric]:
        """Exact match selects; MAE and R² leave out what cannot be parsed, whose rate is beside."""
        return (
            ExactMatch(),
            TextMatch(),
            MeanAbsoluteError(),
            TrimmedAbsoluteError(),
            RSquared(),
            ParseFailureRate(),
            TruncationRate(),
        )

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

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | Sequence[Example]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return ExampleTable(self.table.slice(start, max(0, stop - start)))
            return ExampleTable(self.table.take(list(range(start, stop, step))))
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        (row,) = self.table.slice(index % len(self), 1).to_pylist()
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
        answer=Answer(Fraction(row["answer"])),  # as generated: an integer, or irreducible
        attributes={"operations": row["operations"], "level": row["level"]},
    )
