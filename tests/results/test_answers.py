"""Wrong answers and flips, with the probabilities of digits."""

import pytest

from smmd_bench.results.answers import find_flips, find_wrong
from tests.conftest import expect_user_error
from tests.runs import planted_run, quick_run

ANSWERS = [1, 22, 3, 4]
RIGHT = ["1", "22", "3", "4"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    predictions = {"ce": [*RIGHT[:3], "5"], "ntl": ["1", "no number", "3", "4"]}
    return planted_run(tmp_path_factory.mktemp("flips"), ANSWERS, predictions)


def test_wrong_answers_are_counted_with_the_probability_of_each_true_digit(run):
    _, answers = find_wrong(run, run.cells)
    assert answers.cell["loss"] == "ntl"
    assert answers.counts == {"wrong": 1, "of": 4}

    (row,) = answers.rows.to_dict("records")
    assert row["completion"] == "#### no number"
    probes = run.probes.set_index(["address", "uid"]).sort_index()
    of_answer = probes.loc[(answers.cell["address"], row["uid"]), "p_target"]
    assert len(of_answer) == 2
    assert row["p_target"] == [*of_answer]


def test_the_largest_errors_come_first_and_what_has_no_size_last(tmp_path):
    predictions = {"ce": RIGHT, "ntl": ["2", "no number", "30", "-4"]}
    run = planted_run(tmp_path, ANSWERS, predictions)
    _, answers = find_wrong(run, run.cells)
    completions = [*answers.rows["completion"]]
    assert completions == ["#### 30", "#### -4", "#### 2", "#### no number"]


def test_a_flip_has_both_answers_and_says_who_is_right(run):
    (flips,) = find_flips(run, run.cells[run.cells["loss"] == "ntl"])
    assert flips.counts == {"gained": 1, "lost": 1, "of": 4}
    assert flips.cell["against_loss"] == "ce"
    lost, gained = flips.rows.to_dict("records")
    assert lost["against_completion"] == lost["target"] == "#### 22"
    assert lost["completion"] == "#### no number"
    assert not lost["right"]
    assert gained["completion"] == gained["target"] == "#### 4"
    assert gained["right"]


def test_an_archive_without_probes_has_answers_all_the_same(run):
    for cell in run.described:
        run.current(cell).place("probes").unlink()
    (flips,) = find_flips(run, run.cells[run.cells["loss"] == "ntl"])
    assert flips.rows["p_target"].isna().all()


def test_answers_with_grades_are_not_right_or_wrong(tmp_path):
    run = quick_run(tmp_path, tasks=("samsum",))
    with expect_user_error("not right or wrong"):
        next(find_wrong(run, run.cells))
