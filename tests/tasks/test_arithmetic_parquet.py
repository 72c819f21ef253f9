"""Arithmetic examples in Parquet: the same whatever the processes, whole or absent."""

import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from smmd_bench.tasks._arithmetic_parquet import IN_PROCESS_BELOW, SCHEMA, generate
from smmd_bench.tasks._mixed_expressions import split_of
from smmd_bench.tasks.arithmetic import ExampleTable

from smmd_bench.plugin_system.registry import load_task

LEVELS = ("easy", "medium", "hard")


def drawn(path, count, **changes):
    generate(path, count=count, **{"split": "train", "levels": LEVELS, "seed": 0} | changes)
    return pq.read_table(path)


def expressions(table):
    return set(table["expression"].to_pylist())


def test_a_file_holds_what_was_asked_for(tmp_path):
    table = drawn(tmp_path / "a.parquet", 3002, split="test", seed=7, operations=(1, 2))
    assert table.schema.equals(SCHEMA)
    assert table["uid"].to_pylist() == [f"test-7-{i}" for i in range(3002)]
    assert table["level"].to_pylist() == [LEVELS[i % 3] for i in range(3002)]  # by turns
    assert set(table["operations"].to_pylist()) == {1, 2}
    assert {split_of(expression) for expression in expressions(table)} == {"test"}
    assert drawn(tmp_path / "b.parquet", 0).num_rows == 0


def test_examples_are_the_same_one_by_one_and_in_a_loop(tmp_path):
    examples = ExampleTable(drawn(tmp_path / "a.parquet", 1500))
    parse = load_task("arithmetic").parse
    assert list(examples) == [examples[at] for at in range(1500)]
    assert all(example.answer == parse(example.target) for example in examples)


def test_the_file_does_not_depend_on_the_number_of_processes_nor_on_what_comes_after(tmp_path):
    count = IN_PROCESS_BELOW + 2000  # not a multiple of the block size
    one = drawn(tmp_path / "one.parquet", count, processes=1)
    drawn(tmp_path / "three.parquet", count, processes=3)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "three.parquet").read_bytes()
    smaller = drawn(tmp_path / "smaller.parquet", 1001)  # ends in another block
    assert one.slice(0, 1001).equals(smaller)


def test_every_block_is_drawn_anew(tmp_path):
    questions = drawn(tmp_path / "a.parquet", 6000, levels=("hard", "hard", "hard"))["question"]
    assert questions.slice(0, 3000).to_pylist() != questions.slice(3000).to_pylist()
    assert len(questions.unique()) > 5900


def test_splits_share_no_expression_even_where_there_are_few(tmp_path):
    few = {"levels": ("easy",), "operations": (1, 1)}
    train = drawn(tmp_path / "train.parquet", 4000, **few)
    test = drawn(tmp_path / "test.parquet", 500, split="test", **few)
    assert train.num_rows > len(expressions(train))  # so few that they repeat
    assert not expressions(train) & expressions(test)


@pytest.mark.parametrize("change", [{"seed": 1}, {"operations": (3, 5)}, {"levels": ("easy",)}])
def test_other_parameters_draw_other_examples(tmp_path, change):
    table = drawn(tmp_path / "a.parquet", 300)
    other = drawn(tmp_path / "b.parquet", 300, **change)
    assert table["question"].to_pylist()[0] != other["question"].to_pylist()[0]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interruption_leaves_what_was_there(tmp_path, monkeypatch, processes):
    def interrupt(writer, table):
        raise KeyboardInterrupt

    path = tmp_path / "a.parquet"
    for before in (None, 10):
        old = before and drawn(path, before)
        with monkeypatch.context() as patch:
            patch.setattr(pq.ParquetWriter, "write_table", interrupt)
            with pytest.raises(KeyboardInterrupt):
                drawn(path, 9000, processes=processes)
        assert [file.name for file in tmp_path.iterdir()] == (["a.parquet"] if before else [])
    assert pq.read_table(path).equals(old)


def test_a_killed_process_leaves_no_file_under_the_name(tmp_path):
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


@pytest.mark.parametrize("change", [{"split": "dev"}, {"levels": ("easy", "esay")}, {"levels": ()}])
def test_bad_parameters_are_refused(tmp_path, change):
    with pytest.raises(ValueError, match=r"train, validation, test.*easy, medium"):
        drawn(tmp_path / "a.parquet", 10, **change)
    assert list(tmp_path.iterdir()) == []
