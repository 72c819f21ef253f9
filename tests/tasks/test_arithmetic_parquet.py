"""Arithmetic examples in Parquet: the same whatever the processes, whole or absent."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from smmd_bench.tasks._arithmetic_parquet import IN_PROCESS_BELOW, SCHEMA, generate
from smmd_bench.tasks._mixed_expressions import split_of
from smmd_bench.tasks.arithmetic import ExampleTable

from smmd_bench.plugin_system.registry import load_task

LEVELS = ("easy", "medium", "hard")


def drawn(path: Path, count: int, **changes: Any) -> pa.Table:
    arguments: dict[str, Any] = {"split": "train", "levels": LEVELS, "seed": 0} | changes
    generate(path, count=count, **arguments)
    return pq.read_table(path)


def expressions(table: pa.Table) -> set[str]:
    return set(table["expression"].to_pylist())


def test_columns_and_their_types(tmp_path: Path) -> None:
    table = drawn(tmp_path / "a.parquet", 10)
    assert table.schema.equals(SCHEMA)
    assert table.num_rows == 10


def test_examples_are_the_same_one_by_one_and_in_a_loop(tmp_path: Path) -> None:
    examples = ExampleTable(drawn(tmp_path / "a.parquet", 1500))
    parse = load_task("arithmetic").parse
    assert list(examples) == [examples[at] for at in range(1500)]
    assert all(example.answer == parse(example.target) for example in examples)


def test_uids_name_the_split_the_seed_and_the_index(tmp_path: Path) -> None:
    table = drawn(tmp_path / "a.parquet", 3, split="test", seed=7)
    assert table["uid"].to_pylist() == ["test-7-0", "test-7-1", "test-7-2"]


def test_the_file_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    count = IN_PROCESS_BELOW + 2000  # not a multiple of the block size
    drawn(tmp_path / "one.parquet", count, processes=1)
    drawn(tmp_path / "three.parquet", count, processes=3)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "three.parquet").read_bytes()


def test_a_smaller_file_is_the_beginning_of_a_larger_one(tmp_path: Path) -> None:
    smaller = drawn(tmp_path / "a.parquet", 1001)
    larger = drawn(tmp_path / "b.parquet", 3500)  # ends in another block
    assert larger.slice(0, 1001).equals(smaller)


def test_levels_take_turns(tmp_path: Path) -> None:
    column = drawn(tmp_path / "a.parquet", 3002)["level"].to_pylist()
    assert column == [LEVELS[i % 3] for i in range(3002)]


def test_every_block_is_drawn_anew(tmp_path: Path) -> None:
    questions = drawn(tmp_path / "a.parquet", 6000, levels=("hard", "hard", "hard"))["question"]
    assert questions.slice(0, 3000).to_pylist() != questions.slice(3000).to_pylist()
    assert len(questions.unique()) > 5900


def test_only_expressions_of_the_split_are_kept(tmp_path: Path) -> None:
    table = drawn(tmp_path / "a.parquet", 200, split="validation")
    assert {split_of(expression) for expression in expressions(table)} == {"validation"}


def test_splits_share_no_expression_even_where_there_are_few(tmp_path: Path) -> None:
    few = {"levels": ("easy",), "operations": (1, 1)}
    train = drawn(tmp_path / "train.parquet", 4000, **few)
    test = drawn(tmp_path / "test.parquet", 500, split="test", **few)
    assert train.num_rows > len(expressions(train))  # so few that they repeat
    assert not expressions(train) & expressions(test)


@pytest.mark.parametrize("change", [{"seed": 1}, {"operations": (3, 5)}, {"levels": ("easy",)}])
def test_other_parameters_draw_other_examples(tmp_path: Path, change: dict[str, Any]) -> None:
    table = drawn(tmp_path / "a.parquet", 300)
    other = drawn(tmp_path / "b.parquet", 300, **change)
    assert table["question"].to_pylist()[0] != other["question"].to_pylist()[0]


def test_operations_are_those_asked_for(tmp_path: Path) -> None:
    table = drawn(tmp_path / "a.parquet", 600, operations=(1, 2))
    assert Counter(table["operations"].to_pylist()).keys() == {1, 2}


def test_nothing_is_an_empty_file(tmp_path: Path) -> None:
    assert drawn(tmp_path / "a.parquet", 0).num_rows == 0


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing ends with an interrupt."""

    def interrupt(writer: pq.ParquetWriter, table: pa.Table) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pq.ParquetWriter, "write_table", interrupt)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.usefixtures("interrupted")
def test_an_interrupted_run_leaves_no_file(tmp_path: Path, processes: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        drawn(tmp_path / "a.parquet", 9000, processes=processes)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_leaves_the_old_file(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "a.parquet"
    old = drawn(path, 10)
    request.getfixturevalue("interrupted")
    with pytest.raises(KeyboardInterrupt):
        drawn(path, 9000)
    assert pq.read_table(path).equals(old)


def test_a_killed_process_leaves_no_file_under_the_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    program = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from smmd_bench.tasks import _arithmetic_parquet as arithmetic\n"
        "kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "arithmetic.pq.ParquetWriter.write_table = kill\n"
        f"path = Path({str(path)!r})\n"
        "arithmetic.generate(path, count=9000, split='train', levels=('easy',), seed=0)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not path.exists()
    assert drawn(path, 9000, levels=("easy",)).num_rows == 9000
