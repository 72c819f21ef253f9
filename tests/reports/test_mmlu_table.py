"""Table 12, and the table of any other suite."""

import shutil

import pytest
from rich.console import Console
from smmd_bench.reports.mmlu_table import MmluTable
from smmd_bench.reports.regression_table import RegressionTable

import smmd_bench as sb
from smmd_bench.publishing.tables import to_terminal
from smmd_bench.storage.files import read_json, write_json
from tests.regression_checks import write_checks
from tests.reports.golden import assert_golden
from tests.runs import write_run


def make_run(folder, model="Qwen/Qwen2.5-1.5B", seeds=(0,), losses=("ce", "ntl", "smmd")):
    write_run(
        folder, models=(model,), tasks=("gsm8k",), losses=losses, seeds=seeds, n=20, steps=5,
        recipe={},
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def paper_run(tmp_path_factory):
    """One of the paper's models, trained on GSM8K, with all of MMLU."""
    folder = make_run(tmp_path_factory.mktemp("runs") / "paper")
    write_checks(folder)
    return sb.read_run(folder)


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory):
    """Another model with two seeds, ten questions a group, of which three were cut."""
    folder = make_run(tmp_path_factory.mktemp("runs") / "quick", "builtin/tiny", (0, 1))
    write_checks(folder, limit=10, truncated=3)
    write_checks(folder, "gsm8k", limit=50)
    return sb.read_run(folder)


def test_the_table_of_a_model_of_the_paper(paper_run):
    assert_golden("mmlu_paper_model", MmluTable().build(paper_run))


def test_the_table_of_a_quick_look(quick_run):
    assert_golden("mmlu_quick_look", MmluTable().build(quick_run))


def test_the_table_of_another_suite(quick_run):
    assert_golden("regression_gsm8k", RegressionTable().build(quick_run))


@pytest.mark.parametrize("name", ["paper_run", "quick_run"])
def test_the_tables_fit_a_terminal_of_100_columns(name, request):
    run = request.getfixturevalue(name)
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        for report in (MmluTable(), RegressionTable()):
            if report.skip(run) is None:
                console.print(to_terminal(report.build(run).table, "title", "", 100))
    lines = captured.get().splitlines()
    assert max(len(line.rstrip()) for line in lines if " · " not in line) <= 100


def test_the_papers_rows_stand_below_ours(paper_run):
    artefact = MmluTable().build(paper_run)
    table = artefact.table.set_index(["Loss", "From"])
    assert table.loc[("SMMD", "paper"), "Avg."] == "61.32 ± 0.39"
    assert table.loc[("CE", "paper"), "Humanities"] == "54.94 ± 0.68"
    assert len(table) == 6  # the paper has no row of NTL, nor of the untuned model
    data = artefact.data.set_index(["loss", "name"])
    assert data.loc[("smmd", "mmlu_stem"), ["published", "published_error"]].tolist() == [
        55.44,
        0.86,
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"limit": 100}, {"shots": 0}, {"model": "Qwen/Qwen2.5-0.5B"}, {"task": "svamp"},
        {"recipe": {"train_examples": 256}},
    ],
)  # fmt: skip
def test_another_setting_has_no_published_value(change, tmp_path):
    model = change.pop("model", "Qwen/Qwen2.5-1.5B")
    write_run(
        tmp_path / "run", models=(model,), tasks=(change.pop("task", "gsm8k"),),
        losses=("ce", "smmd"), seeds=(0,), n=20, steps=5, recipe=change.pop("recipe", {}),
    )  # fmt: skip
    write_checks(tmp_path / "run", **change)
    artefact = MmluTable().build(sb.read_run(tmp_path / "run"))
    assert "From" not in artefact.table.columns
    assert "Table 12 of the paper" not in artefact.caption
    assert artefact.data["published"].isna().all()


def test_non_inferior_only_where_the_whole_interval_is_above_the_margin(paper_run):
    artefact = MmluTable().build(paper_run)
    data = artefact.data[artefact.data["name"] == "mmlu"].set_index("loss")
    verdicts = artefact.table.drop_duplicates("Loss").set_index("Loss")["Not worse"]
    assert data.loc["smmd", "low"] > -1
    assert data.loc["ntl", "low"] < -1
    assert verdicts.to_dict() == {"untuned": "–", "CE": "–", "NTL": "unclear", "SMMD": "yes"}


def test_few_questions_show_nothing(quick_run):
    for report in (MmluTable(), RegressionTable()):
        assert set(report.build(quick_run).table["Not worse"]) == {"–", "unclear"}


def test_the_captions_count_what_was_left_out(quick_run):
    caption = MmluTable().build(quick_run).caption
    assert "the first 10 questions of each subject" in caption
    assert "mmlu with builtin/tiny: 3 of 40 (context 2,048 tokens)." in caption
    assert "Table 12" not in caption


def test_whole_and_limited_rows_are_told_apart(tmp_path):
    write_checks(make_run(tmp_path / "run", losses=("ce", "smmd")), limit=10)
    write_checks(tmp_path / "run")
    artefact = MmluTable().build(sb.read_run(tmp_path / "run"))
    assert artefact.table["Limit"].value_counts().to_dict() == {"–": 5, "first 10": 3}
    assert "Rows with a limit" in artefact.caption
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(to_terminal(artefact.table, "title", "", 100))
    assert max(len(line.rstrip()) for line in captured.get().splitlines()) <= 100


def test_a_metric_without_mcnemars_test_has_no_word_of_it(quick_run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(quick_run.path, folder)
    for file in folder.glob("regression/*/comparison.json"):
        content = read_json(file)
        for values in content["metrics"].values():
            values |= {"p": None, "b": None, "c": None, "left_out": 3}
        write_json(file, content)
    artefact = RegressionTable().build(sb.read_run(folder))
    assert "p" not in artefact.table.columns
    assert "McNemar" not in artefact.caption
    assert "up to 3 questions" in artefact.caption


def test_a_value_that_all_rows_share_stays_in_the_table(paper_run):
    table = MmluTable().build(paper_run).table
    table["STEM"] = "50.00 ± 1.00"
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(to_terminal(table, "title", "", 100))
    assert "STEM 50.00" not in captured.get()
    assert "STEM" in captured.get()


def test_without_checks_both_are_skipped(tmp_path):
    run = sb.read_run(make_run(tmp_path / "run", losses=("ce",)))
    assert "was not run" in MmluTable().skip(run)
    assert "no other suite" in RegressionTable().skip(run)


def test_a_checkpoint_of_another_recipe_is_not_compared_and_the_caption_says_so(tmp_path):
    write_run(
        tmp_path, models=("Qwen/Qwen2.5-1.5B",), tasks=("gsm8k",), losses=("ce",), seeds=(0,), n=9,
        steps=3, recipe={"epochs": 2, "train_examples": 256},
    )  # fmt: skip
    write_checks(tmp_path)
    caption = MmluTable().build(sb.read_run(tmp_path)).caption
    assert "256 of 6,973 training examples, epochs 2 instead of 5." in caption
