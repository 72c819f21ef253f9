"""Tables of runs with a loss that has no result at all, with many losses, and with variants."""

import shutil
from pathlib import Path

import pytest
from smmd_bench.reports._columns import LOSSES, losses_with_columns
from smmd_bench.reports.arithmetic_operations import ArithmeticOperations
from smmd_bench.reports.arithmetic_table import ArithmeticTable
from smmd_bench.reports.chart_table import ChartTable
from smmd_bench.reports.clock_table import ClockTable
from smmd_bench.reports.math_table import MathTable
from smmd_bench.reports.samsum_table import SamsumTable
from smmd_bench.reports.scale_errors import ScaleErrors
from smmd_bench.reports.task_table import TaskTable

import smmd_bench as sb
from smmd_bench.publishing import tables
from smmd_bench.storage.files import read_json
from tests.runs import write_failure, write_run

TASKS = ("arithmetic", "gsm8k", "clock_time", "chartqa", "samsum", "halving")
ROWS = {
    "arithmetic": (ArithmeticTable(), "Acc (%)"),
    "gsm8k": (MathTable(), "Acc (%)"),
    "clock_time": (ClockTable(), "Acc (%)"),
    "chartqa": (ChartTable(), "Acc (%)"),
    "samsum": (SamsumTable(), "F1 × 100"),
    "halving": (TaskTable(), "Exact match"),
}
FAILURES = {
    "failed in train": {"stage": "train", "error": "out of memory"},
    "skipped": {"skipped": True, "error": "no such digits"},
    "pending": None,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    write_run(folder, tasks=TASKS, losses=("ce", "ntl", "smmd"), n=12, steps=3, resamples=5)
    return sb.read_run(folder)


def without(run, tmp_path, failure, loss="ntl"):
    """A copy of the run in which a loss has no result of any seed."""
    folder = Path(shutil.copytree(run.path, tmp_path / "run"))
    for file in folder.glob("cells/*/cell.json"):
        if read_json(file)["loss"] == loss:
            file.with_name("metrics.json").unlink()
            if failure is not None:
                write_failure(file.parent, failure)
    return sb.read_run(folder)


@pytest.mark.parametrize("said", FAILURES)
def test_a_loss_without_a_result_has_a_row_that_says_why(said, run, tmp_path):
    lost = without(run, tmp_path, FAILURES[said])
    for task, (report, heading) in ROWS.items():
        table = report.build(lost).table
        assert list(table["Loss"].unique()) == ["untuned", "CE", "NTL", "SMMD"], task
        for _, row in table[table["Loss"] == "NTL"].iterrows():
            assert row[heading] == said
            assert set(row.iloc[list(row.index).index(heading) + 1 :]) - {"not compared"} == {"–"}


def test_a_hole_moves_no_bold_and_no_alignment(run, tmp_path):
    lost = without(run, tmp_path, FAILURES["failed in train"])
    for report in (ArithmeticTable(), MathTable()):
        whole, table = report.build(run).table, report.build(lost).table
        smmd = list(table["Loss"]).index("SMMD")
        was = {column for row, column in whole.attrs["bold"] if row == smmd}
        assert {column for row, column in table.attrs["bold"] if row == smmd} == was
        assert tables.is_numeric(table["Acc (%)"])


def test_a_loss_without_a_result_has_a_column_that_says_why(run, tmp_path):
    lost = without(run, tmp_path, FAILURES["failed in train"])
    for report in (ArithmeticOperations(), ScaleErrors()):
        table = report.build(lost).table
        table = table[table["Task"] == "arithmetic"] if "Task" in table else table
        assert list(table["NTL"]) == ["failed in train", *["–"] * (len(table) - 1)]
        assert list(table["SMMD"]) == list(
            report.build(run).table.loc[table.index, "SMMD"]
        )  # fmt: skip


def test_at_most_so_many_losses_have_columns_the_papers_first():
    every = ["base", "ce", "gce", "ntl", "smmd[sigma=1]", "ntil", "dist2", "smmd"]
    shown, note = losses_with_columns(every)
    assert shown == ["ce", "gce", "ntl", "ntil", "dist2", "smmd"]
    assert len(shown) == LOSSES
    assert note.endswith("CSV of the data: untuned, SMMD[sigma=1].")
    assert losses_with_columns(every[:4]) == (every[:4], "")


def test_the_csv_has_the_losses_that_have_no_column(tmp_path):
    losses = ("ce", "gce", "ntl", "ntil", "smmd", "smmd[sigma=1]")
    write_run(tmp_path, losses=losses, seeds=(0,), n=12, steps=3, resamples=5)
    for report in (ArithmeticOperations(), ScaleErrors()):
        artefact = report.build(sb.read_run(tmp_path))
        assert "untuned" not in artefact.table
        assert "base" in set(artefact.data["loss"])
        assert "CSV of the data: untuned." in artefact.caption


def test_a_sweep_in_the_run_changes_nothing_but_the_caption(tmp_path):
    named = {"n": 60, "steps": 3, "resamples": 20}
    write_run(tmp_path, losses=("ce", "ntl", "smmd"), **named)
    before = ArithmeticTable().build(sb.read_run(tmp_path))
    sweep = tuple(f"smmd[sigma={value}]" for value in (1, 3, 5))
    write_run(tmp_path, losses=("ce", *sweep), seeds=(0,), **named)
    after = ArithmeticTable().build(sb.read_run(tmp_path))
    assert tables.to_csv(after.table) == tables.to_csv(before.table)
    assert after.data["p_holm"].tolist() == pytest.approx(
        before.data["p_holm"].tolist(), nan_ok=True
    )
    assert "sweeps: 3 variants" in after.caption
    assert before.caption in after.caption
