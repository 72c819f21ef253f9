"""The best constant answer beside the results, and what it says of a loss that learnt."""

import numpy as np
import pytest
from smmd_bench.reports.metric_tables import MathTable
from smmd_bench.reports.verdict import Verdict

from smmd_bench.results.constants import constants_of
from smmd_bench.results.verdict import NOTHING_LEARNT
from tests.runs import planted_run, quick_run

ANSWERS = [str(value) for value in (*range(10, 45), 10, 10, 10, 90, 700)]
NEAR = [f"{answer}.5" for answer in ANSWERS]
WILD = ["9999"] * 40


def test_the_constants_are_those_of_the_test_answers(tmp_path):
    run = planted_run(tmp_path, ANSWERS, {"ce": NEAR, "smmd": ANSWERS})
    cells = run.cells
    constants = constants_of(run, cells)
    assert {*constants["address"]} == {*cells["address"]}

    by_metric = constants.drop_duplicates("metric").set_index("metric")
    constant = by_metric["constant"]
    assert constant["exact_match"] == pytest.approx(100 * 4 / 40)

    values = np.array(ANSWERS, float)
    median = np.median(values)
    error = np.abs(values - median).mean()
    assert constant["mean_absolute_error"] == pytest.approx(error)


def test_tables_and_the_verdict_say_it_beside_their_n(tmp_path):
    run = planted_run(tmp_path, ANSWERS, {"ce": NEAR, "smmd": ANSWERS})
    sentence = "The best constant answer gets Acc (%) 10.0, MAE 27.32."
    for report in (MathTable(), Verdict()):
        caption = report.build(run).caption
        assert f"n = 40 test examples; seed 0. {sentence}" in caption


def test_a_task_of_times_says_it_of_its_gap_and_one_of_text_says_nothing(tmp_path):
    run = quick_run(tmp_path, tasks=("clock_time", "samsum"), n=20)
    metrics = constants_of(run, run.cells).merge(run.cells[["address", "task_name"]])
    assert {*metrics["task_name"]} == {"clock_time"}
    assert {*metrics["metric"]} == {"exact_match", "time_gap"}


def test_the_verdict_names_every_loss_that_does_not_beat_it(tmp_path):
    run = planted_run(tmp_path, ANSWERS, {"ce": NEAR, "ntl": WILD, "smmd": ANSWERS})
    caption = Verdict().build(run).caption
    assert (
        "No better than the best constant answer (MAE 27.32): NTL 9954.88." in caption
    )
    assert "CE 0.50" not in caption


def test_nothing_exact_and_a_small_error_is_a_model_that_learnt(tmp_path):
    run = planted_run(tmp_path / "near", ANSWERS, {"ce": WILD, "smmd": NEAR})
    rows = run.verdict.set_index("metric")["verdict"]
    assert NOTHING_LEARNT not in {*rows}
    wild = planted_run(tmp_path / "wild", ANSWERS, {"ce": WILD, "smmd": WILD})
    assert {*wild.verdict["verdict"]} == {NOTHING_LEARNT}
