import pandas as pd
import pytest
from smmd_bench.reports.scale_errors import ROWS, ScaleErrors, category_counts

import smmd_bench as sb
from smmd_bench.scoring.categories import CATEGORIES
from smmd_bench.storage.files import write_json
from tests.reports.golden import assert_golden
from tests.runs import Planted, rewrite, write_run

ANSWERS = ["100"] * 11 + ["0"] * 4
PLANTED = [
    "100", "-100", "10", "1000", "10000", "101", "150", "120", "none", "0.1", "100000",
    "0", "1", "-1", "2",
]  # fmt: skip
COUNTS = {
    "exact": 2, "sign_flip": 1, "scale_x10^-3": 1, "scale_x10^-1": 1, "scale_x10^1": 1,
    "scale_x10^2": 1, "scale_x10^3": 1, "near_miss": 3, "catastrophic": 2, "other": 1, "invalid": 1,
    "scale": 5, "n": 15,
}  # fmt: skip


def planted(path, predictions, **names):
    write_run(
        path, tasks=("gsm8k",), planted=Planted(ANSWERS, predictions), steps=5, resamples=20,
        **{"seeds": (0,), **names},
    )  # fmt: skip
    return sb.read_run(path)


def test_planted_answers_give_known_counts(tmp_path):
    data = category_counts(planted(tmp_path, {"ce": PLANTED, "smmd": ANSWERS}))
    ce = data[data["loss"] == "ce"].set_index("category")
    assert {name: n for name, n in ce["count"].items() if n} == COUNTS
    assert ce.loc["near_miss", "share"] == pytest.approx(20)
    smmd = data[data["loss"] == "smmd"].set_index("category")["count"]
    assert {name: n for name, n in smmd.items() if n} == {"exact": 15, "n": 15}


def test_a_truth_of_zero_is_never_a_flipped_sign_or_a_scale(tmp_path):
    answers = Planted(["0"] * 3, {"ce": ["10", "-5", "0"]})
    write_run(tmp_path, tasks=("gsm8k",), planted=answers, seeds=(0,), steps=5, resamples=20)
    counts = category_counts(sb.read_run(tmp_path)).set_index("category")["count"]
    assert (counts["catastrophic"], counts["exact"], counts["scale"]) == (2, 1, 0)


def test_the_rows_are_the_papers_categories_in_its_order():
    assert [name for name in ROWS if name not in ("scale", "n")] == list(CATEGORIES)


def test_counts_are_means_over_seeds(tmp_path):
    run = planted(tmp_path, {"smmd": {0: PLANTED, 1: ANSWERS}}, seeds=(0, 1))
    artefact = ScaleErrors().build(run)
    table = artefact.table.set_index("Category")
    assert table.loc["Exact", "SMMD"] == "8.5 (56.67)"
    assert table.loc["Total", "SMMD"] == "15.0"
    assert "Means over the seeds." in artefact.caption
    assert "n = 15 test examples; seeds 0, 1;" in artefact.caption


def test_powers_that_no_answer_is_off_by_have_no_row(tmp_path):
    table = ScaleErrors().build(planted(tmp_path, {"ce": PLANTED})).table
    assert [c for c in table["Category"] if c.startswith("k")] == [
        "k = −3", "k = −1", "k = +1", "k = +2", "k = +3",
    ]  # fmt: skip


def test_targets_without_a_number_do_not_count(tmp_path):
    run = planted(tmp_path, {"ce": PLANTED})
    (file,) = tmp_path.glob("cells/*/scores.parquet")
    scores = pd.read_parquet(file)
    scores.loc[:1, "answer"] = float("nan")
    rewrite(file, scores)
    artefact = ScaleErrors().build(run)
    counts = artefact.data.set_index("category")["count"]
    assert (counts["n"], counts["exact"], counts["sign_flip"]) == (13, 1, 0)
    assert "Up to 2 examples of a task are left out" in artefact.caption


def test_the_papers_counts_stand_beside_its_model_and_task(tmp_path):
    write_run(
        tmp_path, models=("Qwen/Qwen2.5-1.5B",), tasks=("gsm8k", "svamp"),
        losses=("ce", "gce", "ntl", "ntil", "smmd"), seeds=(0,), n=1319, steps=5, resamples=20,
        recipe={},
    )  # fmt: skip
    artefact = ScaleErrors().build(sb.read_run(tmp_path))
    assert_golden("scale_errors_paper_model", artefact)
    table = artefact.table.set_index(["Task", "Category"])
    assert table.loc[("gsm8k", "Exact"), "Paper CE"] == "726 (55.04)"
    assert table.loc[("gsm8k", "Catastrophic"), "Paper SMMD"] == "283 (21.46)"
    assert table.loc[("gsm8k", "Invalid"), "Paper CE"] == "–"
    assert table.loc[("svamp", "Exact"), "Paper CE"] == "–"


def test_another_task_has_no_published_counts(run_folder):
    artefact = ScaleErrors().build(sb.read_run(run_folder))
    assert_golden("scale_errors_arithmetic", artefact)
    assert not any("Paper" in column for column in artefact.table)
    assert "Table 10" not in artefact.caption


def test_runs_without_results_or_numbers_are_skipped(tmp_path):
    write_json(tmp_path / "empty" / "manifest.json", {"name": "empty", "experiment": {}})
    assert ScaleErrors().skip(sb.read_run(tmp_path / "empty")) == "no cell has results"
    run = planted(tmp_path / "run", {"ce": PLANTED})
    (file,) = run.path.glob("cells/*/scores.parquet")
    rewrite(file, pd.read_parquet(file).assign(answer=float("nan")))
    assert ScaleErrors().skip(run) == "no task has numbers as answers"
