import pandas as pd
import pytest
from smmd_bench.reports.arithmetic_operations import ArithmeticOperations, accuracy_by_operations

from tests.changed_runs import changed
from tests.reports.golden import words
from tests.runs import quick_run


def test_accuracy_by_operations_is_that_of_the_completions(run):
    data = accuracy_by_operations(run.completions)
    completions = run.completions[run.completions["loss"] == "smmd"]
    expected = 100 * completions.groupby("operations")["exact"].mean()
    found = data[data["loss"] == "smmd"].set_index("operations")["accuracy"]
    assert found.to_dict() == pytest.approx(expected.to_dict())
    (axis,) = ArithmeticOperations().build(run).figure.axes
    assert axis.get_legend_handles_labels()[1] == ["untuned", "CE", "NTL", "SMMD"]


def test_a_second_seed_of_the_same_examples_does_not_narrow_an_interval():
    one = pd.DataFrame(
        {"model": "m", "task": "t", "loss": "ce", "operations": 1, "seed": 0,
         "exact": [True, False] * 20}
    )  # fmt: skip
    two = pd.concat([one, one.assign(seed=1)])
    (a,), (b,) = (accuracy_by_operations(f).to_dict("records") for f in (one, two))
    assert (a["low"], a["high"], a["n"]) == (b["low"], b["high"], b["n"])
    assert b["seeds"] == 2


def test_examples_that_do_not_count_operations_are_skipped(run, tmp_path):
    run = changed(run, tmp_path, "scores.parquet", lambda scores: scores.drop(columns="operations"))
    assert ArithmeticOperations().skip(run) == "the examples do not count operations"


def test_numbers_of_operations_of_fewer_than_30_examples_are_named_and_not_drawn(run, tmp_path):
    def one_longer(scores):
        return scores.assign(operations=[9, *[1] * (len(scores) - 1)])

    run = changed(run, tmp_path, "scores.parquet", one_longer)
    artefact = ArithmeticOperations().build(run)
    (axis,) = artefact.figure.axes
    assert list(axis.get_xticks()) == [1]
    assert "fewer than 30 test examples: operations 9 (builtin/tiny, arith" in words(artefact)
    assert set(artefact.data["operations"]) == {1, 9}


def test_a_run_of_few_examples_has_a_table_and_no_figure(tmp_path):
    artefact = ArithmeticOperations().build(quick_run(tmp_path, losses=("ce",), n=6))
    assert artefact.figure is None
    assert len(artefact.table)
