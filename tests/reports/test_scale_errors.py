import pytest
from smmd_bench.reports.scale_errors import ROWS, ScaleErrors, category_counts

from smmd_bench.scoring.categories import CATEGORIES
from tests.changed_runs import changed
from tests.reports.golden import words
from tests.runs import planted_run

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


def test_planted_answers_give_known_counts_and_powers_that_occur_have_rows(tmp_path):
    run = planted_run(tmp_path, ANSWERS, {"ce": PLANTED, "smmd": ANSWERS})
    data = category_counts(run)
    ce = data[data["loss"] == "ce"].set_index("category")
    assert {name: n for name, n in ce["count"].items() if n} == COUNTS
    assert ce.loc["near_miss", "share"] == pytest.approx(20)
    smmd = data[data["loss"] == "smmd"].set_index("category")["count"]
    assert {name: n for name, n in smmd.items() if n} == {"exact": 15, "n": 15}
    table = ScaleErrors().build(run).table
    assert [c for c in table["Category"] if c.startswith("k")] == [
        "k = −3", "k = −1", "k = +1", "k = +2", "k = +3",
    ]  # fmt: skip


def test_a_truth_of_zero_is_never_a_flipped_sign_or_a_scale(tmp_path):
    run = planted_run(tmp_path, ["0"] * 3, {"ce": ["10", "-5", "0"]})
    counts = category_counts(run).set_index("category")["count"]
    assert (counts["catastrophic"], counts["exact"], counts["scale"]) == (2, 1, 0)


def test_the_rows_are_the_papers_categories_in_its_order():
    assert [name for name in ROWS if name not in ("scale", "n")] == list(CATEGORIES)


def test_counts_are_means_over_seeds(tmp_path):
    run = planted_run(tmp_path, ANSWERS, {"smmd": {0: PLANTED, 1: ANSWERS}}, seeds=(0, 1))
    artefact = ScaleErrors().build(run)
    table = artefact.table.set_index("Category")
    assert table.loc["Exact", "SMMD"] == "8.5 (56.67)"
    assert table.loc["Total", "SMMD"] == "15.0"
    assert "Means over the seeds." in words(artefact)


def test_targets_without_a_number_do_not_count(tmp_path):
    def hide(scores):
        return scores.assign(answer=scores["answer"].where(scores.index > 1))

    run = planted_run(tmp_path, ANSWERS, {"ce": PLANTED})
    artefact = ScaleErrors().build(changed(run, tmp_path, "scores.parquet", hide))
    counts = artefact.data.set_index("category")["count"]
    assert (counts["n"], counts["exact"], counts["sign_flip"]) == (13, 1, 0)
    assert "Up to 2 examples of a task are left out" in words(artefact)
