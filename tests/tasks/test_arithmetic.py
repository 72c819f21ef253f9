"""Arithmetic examples in Parquet: the same whatever the processes."""

import pyarrow.parquet as pq
import pytest
from smmd_bench.tasks._mixed_expressions import split_of
from smmd_bench.tasks.arithmetic import IN_PROCESS_BELOW, SCHEMA, ExampleTable, generate

LEVELS = ("easy", "medium", "hard")


def drawn(path, count, **changes):
    generate(
        path, count=count, **{"split": "train", "levels": LEVELS, "seed": 0} | changes
    )
    return pq.read_table(path)


def expressions(table):
    return set(table["expression"].to_pylist())


def test_a_file_holds_what_was_asked_for(tmp_path):
    table = drawn(tmp_path / "a.parquet", 3002, split="test", seed=7, operations=(1, 2))
    assert table.schema.equals(SCHEMA)
    assert table["uid"].to_pylist() == [f"test-7-{i}" for i in range(3002)]
    # by turns
    assert table["level"].to_pylist() == [LEVELS[i % 3] for i in range(3002)]
    assert set(table["operations"].to_pylist()) == {1, 2}
    assert {split_of(expression) for expression in expressions(table)} == {"test"}
    assert drawn(tmp_path / "b.parquet", 0).num_rows == 0


def test_examples_are_the_same_one_by_one_and_in_a_loop(tmp_path):
    examples = ExampleTable(drawn(tmp_path / "a.parquet", 1500))
    assert list(examples) == [examples[at] for at in range(1500)]


@pytest.mark.parametrize(
    "rows",
    [slice(2, 9), slice(2, 20, 3), slice(-4, None), slice(9, 2, -2), slice(5, 3, 2)],
)
def test_a_slice_of_examples_is_that_of_their_list(tmp_path, rows):
    examples = ExampleTable(drawn(tmp_path / "a.parquet", 30))
    assert list(examples[rows]) == list(examples)[rows]


def test_the_file_does_not_depend_on_the_number_of_processes_nor_on_what_comes_after(
    tmp_path,
):
    count = IN_PROCESS_BELOW + 2000  # not a multiple of the block size
    first = drawn(tmp_path / "one.parquet", count, processes=1)
    drawn(tmp_path / "two.parquet", count, processes=2)
    assert (tmp_path / "one.parquet").read_bytes() == (
        tmp_path / "two.parquet"
    ).read_bytes()
    smaller = drawn(tmp_path / "smaller.parquet", 1001)  # ends in another block
    assert first.slice(0, 1001).equals(smaller)


def test_splits_share_no_expression_even_where_there_are_few(tmp_path):
    few = {"levels": ("easy",), "operations": (1, 1)}
    train = drawn(tmp_path / "train.parquet", 4000, **few)
    test = drawn(tmp_path / "test.parquet", 500, split="test", **few)
    assert train.num_rows > len(expressions(train))  # so few that they repeat
    assert not expressions(train) & expressions(test)
