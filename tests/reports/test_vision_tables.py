import shutil
from pathlib import Path

import pytest
from smmd_bench.reports.chart_table import ChartTable
from smmd_bench.reports.clock_table import ClockTable
from smmd_bench.reports.error_histogram import ErrorHistogram
from smmd_bench.reports.scale_errors import ScaleErrors
from smmd_bench.reports.signed_errors import SignedErrors

import smmd_bench as sb
from smmd_bench.storage.files import read_json, write_json
from tests.reports.golden import assert_golden
from tests.runs import write_run

TASKS, LOSSES = ("clock_time", "chartqa"), ("ce", "gce", "ntl", "ntil", "smmd")
MODELS, SIZES = ("Qwen/Qwen2.5-VL-3B-Instruct",), {"clock_time": 1440, "chartqa": 1915}
TABLES = [(ClockTable(), "clock"), (ChartTable(), "chart")]
tables = pytest.mark.parametrize(("report", "name"), TABLES, ids=[name for _, name in TABLES])


@pytest.fixture(scope="module")
def synthetic_run(tmp_path_factory):
    """A small model on synthetic pictures, with two seeds."""
    folder = tmp_path_factory.mktemp("runs") / "synthetic"
    models = ("builtin/tiny-vl",)
    write_run(
        folder, models=models, tasks=TASKS, losses=("ce", "ntl", "smmd"), n=60, steps=5,
        resamples=100,
    )  # fmt: skip
    return sb.read_run(folder)


@pytest.fixture(scope="module")
def paper_run(tmp_path_factory):
    """One of the paper's models on as many pictures, not synthetic, with one seed."""
    folder = tmp_path_factory.mktemp("runs") / "paper"
    for task, n in SIZES.items():
        write_run(
            folder.with_name(task), models=MODELS, tasks=(task,), losses=LOSSES, seeds=(0,), n=n,
            steps=5, resamples=100, source="kaggle", recipe={},
        )  # fmt: skip
        for cell in folder.with_name(task).glob("cells/*"):
            shutil.copytree(cell, folder / "cells" / cell.name)
    manifests = [read_json(folder.with_name(task) / "manifest.json") for task in TASKS]
    data = {task: found for manifest in manifests for task, found in manifest["data"].items()}
    cells = [address for manifest in manifests for address in manifest["cells"]]
    write_json(folder / "manifest.json", {**manifests[0], "data": data, "cells": cells})
    return sb.read_run(folder)


def changed(run, tmp_path, **data):
    """A copy of a run whose manifest says other things of the data of clock_time."""
    folder = Path(shutil.copytree(run.path, tmp_path / "run"))
    manifest = read_json(folder / "manifest.json")
    write_json(folder / "manifest.json", {**manifest, "data": data})
    return sb.read_run(folder)


@tables
def test_the_table_of_synthetic_pictures_over_two_seeds(report, name, synthetic_run):
    assert_golden(f"{name}_synthetic_two_seeds", report.build(synthetic_run))


@tables
def test_the_table_of_a_model_of_the_paper(report, name, paper_run):
    assert_golden(f"{name}_paper_model", report.build(paper_run))


@tables
def test_synthetic_data_is_named_and_not_compared(report, name, synthetic_run):
    artefact = report.build(synthetic_run)
    assert artefact.table.attrs["title"].endswith(f", synthetic {name}s")
    assert set(artefact.table["Data"]) == {"synthetic"}
    assert set(artefact.table.filter(like="aper").stack()) == {"not compared"}
    assert "a model that is not in the paper, synthetic data, 60 of" in artefact.caption
    assert "test examples (a path check on a small subset)" in artefact.caption


@tables
def test_synthetic_data_of_the_papers_model_is_not_compared_either(report, name, tmp_path):
    write_run(
        tmp_path, models=("Qwen/Qwen2.5-VL-3B-Instruct",), tasks=TASKS, losses=("ce",), seeds=(0,),
        n=20, steps=5, resamples=20,
    )  # fmt: skip
    artefact = report.build(sb.read_run(tmp_path))
    assert set(artefact.table.filter(like="aper").stack()) == {"not compared"}
    assert artefact.data.filter(like="published_").isna().all(axis=None)


@tables
def test_published_values_stand_beside_the_papers_model(report, name, paper_run):
    table = report.build(paper_run).table.set_index("Loss")
    assert table.loc["SMMD", "Paper Acc"] == {"clock": "74.30", "chart": "72.21"}[name]
    assert table.loc["untuned", "Paper Acc"] == "–"
    assert table.loc["SMMD", "Δ to paper"] != "–"
    if name == "clock":
        assert table.loc["CE", "Paper gap"] == "86.73"


def test_a_spec_that_only_names_its_source_is_the_papers_setting(tmp_path):
    models = MODELS
    tasks = ("clock_time[source=kaggle]", "clock_time[rotate=true]")
    write_run(
        tmp_path, models=models, tasks=tasks, losses=("ce",), seeds=(0,), n=1440, steps=5,
        resamples=20, source="kaggle", base=False, recipe={},
    )  # fmt: skip
    table = ClockTable().build(sb.read_run(tmp_path)).table.set_index("Task")
    assert table["Paper Acc"].to_dict() == {tasks[0]: "46.39", tasks[1]: "–"}


def test_data_of_unknown_source_is_not_compared(paper_run, tmp_path):
    artefact = ClockTable().build(changed(paper_run, tmp_path))
    assert "Data" not in artefact.table
    assert "Paper Acc" not in artefact.table
    assert "No published values for clock_time: data of unknown source." in artefact.caption


def test_values_and_intervals_are_those_of_the_cells(paper_run):
    table = ClockTable().build(paper_run).table
    columns = {"exact_match": "Acc (%)", "time_gap": "Time gap (min)"}
    for metric, column in columns.items():
        found = paper_run.metrics[paper_run.metrics["metric"] == metric]
        found = found[found["task"] == "clock_time"]
        expected = [f"{r.value:.1f} [{r.low:.1f}, {r.high:.1f}]" for r in found.itertuples()]
        assert list(table[column]) == expected


def test_the_wrapped_gap_is_never_the_larger(paper_run):
    data = ClockTable().build(paper_run).data
    assert (data["time_gap_wrapped_value"] <= data["time_gap_value"]).all()


@tables
def test_digits_outside_the_numeric_vocabulary_are_in_the_caption(
    report, name, synthetic_run, tmp_path
):
    assert "outside V_num" not in report.build(synthetic_run).caption
    folder = Path(shutil.copytree(synthetic_run.path, tmp_path / "run"))
    for address in synthetic_run.cells["address"]:
        targets = {"digit_tokens": 800, "outside": 94, "numeric": 706, "covered": 706}
        file = folder / "cells" / address / "train.json"
        write_json(file, {**read_json(file), "numeric_targets": targets})
    caption = report.build(sb.read_run(folder)).caption
    assert "targets outside V_num: 11.8 % with builtin/tiny-vl." in caption


@tables
def test_a_run_without_the_task_is_skipped(report, name, run_folder):
    task = {"clock": "clock_time", "chart": "chartqa"}[name]
    assert report.skip(sb.read_run(run_folder)) == f"the run has no cell of {task}"


@tables
def test_cells_without_a_result_are_named(report, name, synthetic_run, tmp_path):
    folder = Path(shutil.copytree(synthetic_run.path, tmp_path / "run"))
    for file in folder.glob("cells/*/metrics.json"):
        if read_json(file.with_name("cell.json"))["loss"] == "smmd":
            file.unlink()
    run = sb.read_run(folder)
    task = {"clock": "clock_time", "chart": "chartqa"}[name]
    assert f"Without a result: builtin/tiny-vl {task} smmd" not in report.build(run).caption
    assert (
        "Without a result: builtin/tiny-vl smmd seeds 0, 1 (pending)" in report.build(run).caption
    )


def test_times_are_left_out_of_the_analyses_of_numbers(tmp_path: Path) -> None:
    write_run(tmp_path, tasks=("clock_time",), losses=("ce", "smmd"), seeds=(0,), n=20, resamples=9)
    for report in (ErrorHistogram(), ScaleErrors(), SignedErrors()):
        assert report.skip(sb.read_run(tmp_path)) == "no task has numbers as answers"
