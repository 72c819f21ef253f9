"""The table of tasks that the paper does not have, against the run's own frames."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest
from smmd_bench.reports.task_table import ELSEWHERE, TaskTable

import smmd_bench as sb
from smmd_bench.plugin_system.registry import load_plugin_file
from tests.runs import write_run


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of a task that no plugin is registered for, and one that the paper has."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    write_run(folder, tasks=("halving[digits=3]", "arithmetic[operations=1..2]"))
    return folder


def test_each_loss_is_a_row_with_every_metric_of_the_task(mine: Path) -> None:
    table = TaskTable().build(sb.read_run(mine)).table
    assert table is not None
    assert table.attrs["title"] == "Results: halving[digits=3]"
    assert list(table["Loss"]) == ["untuned", "CE", "NTL", "SMMD"]
    assert list(table["Seeds"]) == ["1", "2", "2", "2"]
    assert list(table["vs"]) == ["–", "untuned", "CE", "CE"]
    for heading in ("Exact match", "Mean absolute error", "R squared", "Parse failure rate"):
        assert (table[heading] != "–").all()


def test_the_values_are_those_of_the_run(mine: Path) -> None:
    run = sb.read_run(mine)
    data = TaskTable().scores(run, run.cells[run.cells["task_name"] == "halving"])
    metrics = run.metrics.set_index(["task", "loss", "seed", "metric"])["value"]
    differences = run.comparisons.set_index(["task", "loss", "seed", "metric"])["difference"]
    assert len(data) == 7 * data["metric"].nunique()
    for row in data.itertuples():
        key = (row.task, row.loss, row.seed, row.metric)
        assert row.value == pytest.approx(metrics[key], nan_ok=True)
        if row.loss != "base":
            assert row.difference == pytest.approx(differences[key], nan_ok=True)


def test_a_task_that_is_known_has_its_own_names_of_metrics(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    load_plugin_file(root / "examples" / "own_task.py")
    write_run(tmp_path, tasks=("doubling",), seeds=(0,))
    artefact = TaskTable().build(sb.read_run(tmp_path))
    assert artefact.table is not None
    assert {"Acc (%)", "MAE", "R²", "Parse failures (%)", "Δ Acc"} <= set(artefact.table.columns)
    assert "[" in artefact.table["Acc (%)"].iloc[0]
    assert "±" not in artefact.caption


def test_tasks_with_a_table_of_their_own_are_not_repeated(run_folder: Path) -> None:
    reason = "every task of the run has a table of its own"
    assert TaskTable().skip(sb.read_run(run_folder)) == reason
    here = {e.name for e in entry_points(group="smmd_bench.tasks") if e.dist.name == "smmd-bench"}
    assert set(ELSEWHERE) == here


def test_a_run_without_results_says_so(mine: Path, tmp_path: Path) -> None:
    write_run(tmp_path, tasks=("halving",), seeds=(0,), losses=("ce",))
    for file in tmp_path.glob("cells/*/metrics.json"):
        file.unlink()
    reason = "no cell of a task without a table has results yet"
    assert TaskTable().skip(sb.read_run(tmp_path)) == reason
