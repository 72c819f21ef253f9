"""Table 12, and the table of any other suite."""

import pytest
from smmd_bench.reports.mmlu_table import MmluTable
from smmd_bench.reports.regression_table import RegressionTable

from smmd_bench.regression.comparison import write_comparisons
from smmd_bench.results.frames import read_run
from smmd_bench.storage.files import read_json, write_json
from tests.regression_checks import write_checks
from tests.reports.conftest import SMALL, TEXT
from tests.reports.golden import printed, widest_line, words
from tests.runs import quick_run

PAPER = {"models": (TEXT,), "tasks": ("gsm8k",), "losses": ("ce", "smmd"), "recipe": {}}


@pytest.fixture(scope="module")
def artefact(runs):
    """The table of one of the paper's models, trained on GSM8K, with all of MMLU."""
    return MmluTable().build(runs("mmlu"))


def test_the_papers_rows_stand_below_ours(artefact):
    table = artefact.table.set_index(["Loss", "From"])
    assert table.loc[("SMMD", "paper"), "Avg."] == "61.32 ± 0.39"
    assert table.loc[("CE", "paper"), "Humanities"] == "54.94 ± 0.68"
    assert len(table) == 6  # the paper has no row of NTL, nor of the untuned model
    row = artefact.data.set_index(["loss", "name"]).loc[("smmd", "mmlu_stem")]
    assert row[["published", "published_error"]].tolist() == [55.44, 0.86]


@pytest.mark.parametrize(
    ("run", "checks", "said"),
    [
        ({}, {"limit": 100}, "questions of each subject"),
        ({}, {"shots": 0}, ""),
        ({"models": (SMALL,)}, {}, ""),
        ({"tasks": ("svamp",)}, {}, ""),
        ({"recipe": {"epochs": 2, "train_examples": 256}}, {},
         "256 of 6,973 training examples, epochs 2 instead of 5."),
    ],
)  # fmt: skip
def test_another_setting_has_no_published_value(run, checks, said, tmp_path):
    quick_run(tmp_path, **{**PAPER, **run})
    write_checks(tmp_path, **checks)
    artefact = MmluTable().build(read_run(tmp_path))
    assert "From" not in artefact.table.columns
    assert "Table 12 of the paper" not in words(artefact)
    assert artefact.data["published"].isna().all()
    assert said in words(artefact)


def test_non_inferior_only_where_the_whole_interval_is_above_the_margin(artefact, runs):
    data = artefact.data[artefact.data["name"] == "mmlu"].set_index("loss")
    verdicts = artefact.table.drop_duplicates("Loss").set_index("Loss")["Not worse"]
    assert data.loc["smmd", "low"] > -1
    assert data.loc["ntl", "low"] < -1
    assert verdicts.to_dict() == {"untuned": "–", "CE": "–", "NTL": "unclear", "SMMD": "yes"}
    for report in (MmluTable(), RegressionTable()):  # few questions show nothing
        assert set(report.build(runs("a look at mmlu")).table["Not worse"]) == {"–", "unclear"}


def test_whole_and_limited_rows_are_told_apart(tmp_path):
    quick_run(tmp_path, **PAPER)
    write_checks(tmp_path, limit=10)
    write_checks(tmp_path)
    artefact = MmluTable().build(read_run(tmp_path))
    assert artefact.table["Limit"].value_counts().to_dict() == {"–": 5, "first 10": 3}
    assert "Rows with a limit" in words(artefact)
    assert widest_line(artefact.table) <= 100


def test_a_metric_without_mcnemars_test_has_no_word_of_it(tmp_path):
    quick_run(tmp_path, **PAPER)
    write_checks(tmp_path, "gsm8k", limit=50)
    for file in tmp_path.glob("regression/*/comparison.json"):
        content = read_json(file)
        for values in content["metrics"].values():
            values |= {"p": None, "b": None, "c": None, "left_out": 3}
        write_json(file, content)
    artefact = RegressionTable().build(read_run(tmp_path))
    assert "p" not in artefact.table.columns
    assert "McNemar" not in words(artefact)
    assert "up to 3 questions" in words(artefact)


def test_a_value_that_all_rows_share_stays_in_the_table(artefact):
    table = artefact.table.assign(STEM="50.00 ± 1.00")
    table.attrs.update(artefact.table.attrs)
    text = "\n".join(printed(table, "", 100))
    assert "STEM 50.00" not in text
    assert "STEM" in text


def test_a_checkpoint_from_elsewhere_shows_its_difference_to_the_untuned_model(tmp_path):
    quick_run(tmp_path, **{**PAPER, "losses": ("ce", "ntl", "smmd")})
    write_checks(tmp_path)
    (file,) = [
        f for f in tmp_path.glob("regression/*/suite.json") if read_json(f)["loss"] == "smmd"
    ]
    elsewhere = {"cell": None, "task": None, "loss": "checkpoint other"}
    write_json(file, {**read_json(file), **elsewhere})
    write_comparisons(read_run(tmp_path))
    artefact = MmluTable().build(read_run(tmp_path))
    rows = artefact.table[artefact.table.get("From", "here") == "here"].set_index("Loss")
    assert rows.loc["checkpoint other", "Δ to CE"].endswith(" to untuned")
    assert rows.loc["checkpoint other", "Not worse"] != "–"
    assert rows.loc["CE", "Δ to CE"] == "–"
    assert "A checkpoint from elsewhere is compared with the untuned model." in words(artefact)


def test_what_was_not_run_is_said(tmp_path):
    run = quick_run(tmp_path, **PAPER)
    assert RegressionTable().skip(run) == "`smmd-bench regress RUN --suite TASK` was not run"
    write_checks(tmp_path)
    assert "no other suite than mmlu" in RegressionTable().skip(read_run(tmp_path))
