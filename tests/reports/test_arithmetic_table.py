import shutil
from pathlib import Path

import pytest
from smmd_bench.reports.arithmetic_table import ArithmeticTable

import smmd_bench as sb
from tests.reports.golden import assert_golden
from tests.runs import write_failure, write_run

PAPER_LOSSES = ("ce", "gce", "ntl", "ntil", "smmd")


@pytest.fixture(scope="module")
def paper_run(tmp_path_factory):
    """One of the paper's models on the paper's task, with one seed."""
    folder = tmp_path_factory.mktemp("runs") / "paper"
    write_run(
        folder, models=("Qwen/Qwen2.5-0.5B",), tasks=("arithmetic",), losses=PAPER_LOSSES,
        seeds=(0,), n=10_000, steps=20, resamples=100, recipe={},
    )  # fmt: skip
    return sb.read_run(folder)


def test_the_table_of_an_easier_level_over_two_seeds(run_folder):
    assert_golden("arithmetic_easier_two_seeds", ArithmeticTable().build(sb.read_run(run_folder)))


def test_the_table_of_a_model_of_the_paper(paper_run):
    assert_golden("arithmetic_paper_model", ArithmeticTable().build(paper_run))


def test_rows_stand_base_first_then_ce(paper_run):
    table = ArithmeticTable().build(paper_run).table
    assert list(table["Loss"]) == ["untuned", "CE", "GCE", "NTL", "NTIL", "SMMD"]


def test_values_and_intervals_are_those_of_the_cells(paper_run):
    artefact = ArithmeticTable().build(paper_run)
    metrics = paper_run.metrics[paper_run.metrics["metric"] == "exact_match"]
    expected = [f"{r.value:.1f} [{r.low:.1f}, {r.high:.1f}]" for r in metrics.itertuples()]
    assert list(artefact.table["Acc (%)"]) == expected


def test_several_seeds_are_a_mean_with_its_deviation(run_folder):
    run = sb.read_run(run_folder)
    table = ArithmeticTable().build(run).table.set_index("Loss")
    ours = run.metrics[(run.metrics["metric"] == "exact_match") & (run.metrics["loss"] == "smmd")]
    mean, deviation = ours["value"].mean(), ours["value"].std(ddof=1)
    assert table.loc["SMMD", "Acc (%)"] == f"{mean:.1f} ± {deviation:.1f}"
    assert table.loc["SMMD", "Seeds"] == "2"
    assert table.loc["untuned", "Seeds"] == "1"


def test_the_title_says_a_level_that_is_not_the_papers(run_folder, paper_run):
    easier = ArithmeticTable().build(sb.read_run(run_folder)).table.attrs["title"]
    assert easier.endswith("arithmetic[operations=1..2], an easier level than the paper's")
    assert ArithmeticTable().build(paper_run).table.attrs["title"] == ArithmeticTable.title


def test_published_values_stand_beside_the_papers_model_alone(run_folder, paper_run):
    easier = ArithmeticTable().build(sb.read_run(run_folder)).table
    assert set(easier.filter(like="aper").stack()) == {"not compared"}
    table = ArithmeticTable().build(paper_run).table.set_index("Loss")
    assert table.loc["SMMD", ["Paper Acc", "Paper MAE", "Paper R²"]].tolist() == [
        "45.93", "3.25", "0.69",
    ]  # fmt: skip
    ours = paper_run.metrics.query("loss == 'smmd' and metric == 'exact_match'")["value"].iloc[0]
    assert table.loc["SMMD", "Δ to paper"] == f"{ours - 45.93:+.1f}".replace("-", "−")
    assert table.loc["untuned", "Paper Acc"] == "–"


def test_another_level_of_the_papers_model_has_no_published_values(tmp_path):
    write_run(
        tmp_path, models=("Qwen/Qwen2.5-0.5B",), seeds=(0,), n=30, steps=5, resamples=20
    )  # fmt: skip
    artefact = ArithmeticTable().build(sb.read_run(tmp_path))
    assert "Paper Acc" not in artefact.table
    for said in (
        "arithmetic[operations=1..2]: another level",
        "30 of 10,000",
        "epochs 4 instead of 15",
    ):
        assert said in artefact.caption


def test_two_levels_have_a_column_that_names_them(tmp_path):
    write_run(
        tmp_path, tasks=("arithmetic", "arithmetic[level=hard]"), seeds=(0,), n=30, steps=5,
        resamples=20,
    )  # fmt: skip
    table = ArithmeticTable().build(sb.read_run(tmp_path)).table
    assert list(table["Task"].unique()) == ["arithmetic", "arithmetic[level=hard]"]
    assert table.attrs["title"].endswith(
        "results, among them arithmetic[level=hard], not the paper's level"
    )


def test_the_caption_names_cells_without_a_result(run_folder, tmp_path):
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    cells = sb.read_run(folder).cells
    lost = folder / "cells" / cells[cells["loss"] == "smmd"]["address"].iloc[1]
    (lost / "metrics.json").unlink()
    write_failure(lost, {"stage": "decode", "error": "out of memory"})
    artefact = ArithmeticTable().build(sb.read_run(folder))
    assert "Without a result: builtin/tiny smmd seed 1 (failed in decode)." in artefact.caption
    assert artefact.table.set_index("Loss").loc["SMMD", "Seeds"] == "1"


def test_a_run_without_arithmetic_is_skipped(tmp_path):
    write_run(tmp_path, tasks=("gsm8k",), seeds=(0,), n=10, steps=5, resamples=20)
    assert ArithmeticTable().skip(sb.read_run(tmp_path)) == "the run has no cell of arithmetic"
