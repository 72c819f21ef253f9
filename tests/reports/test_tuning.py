"""Tables of tuned losses and of decoding rules."""

import shutil

import numpy as np
import pandas as pd
import pytest
from smmd_bench.reports.tuning_tables import DecodingTable, TuningTable
from smmd_bench.reports.verdict import Verdict

from smmd_bench.results.frames import read_run
from smmd_bench.run.comparison import write_comparisons
from smmd_bench.scoring.decoding_rules import RULES
from smmd_bench.scoring.measure import measure
from tests.reports.test_goldens import assert_golden
from tests.runs import quick_run, task_of, write_measured
from tests.tuned_runs import tuned_run


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """Two seeds: CE chooses either rate, SMMD lambda=10 twice."""
    return tuned_run(tmp_path_factory.mktemp("tuned"), n=60)


def test_the_table_of_a_tuning_is_as_it_was(tuned):
    assert TuningTable().skip(tuned) is None
    made = TuningTable().build(tuned)
    assert made.figure is None
    assert_golden("tuning_two_seeds", made)


def test_settings_with_three_values_are_curves_of_validation_at_the_best_of_the_others(tmp_path):
    rates = tuple(f"learning_rate={rate},epochs={n}" for rate in (1e-4, 1e-3, 0.01) for n in (1, 2))
    lambdas = ("lambda=1", "lambda=3", "lambda=10", "lambda=30")
    run = tuned_run(tmp_path, {"ce": rates, "smmd": lambdas}, n=40)
    made = TuningTable().build(run)
    assert [axis.get_xlabel() for axis in made.figure.axes] == ["learning_rate", "λ"]
    drawn = [[*map(list, axis.containers[0].lines[0].get_data())] for axis in made.figure.axes]
    # CE chooses its first setting with seed 0 (51 %), its second one with seed 1 (52 %)
    assert drawn == [[[1e-4, 1e-3, 0.01], [51.5, 50, 50]], [[1, 3, 10, 30], [50, 51.5, 50, 50]]]


def test_the_best_of_the_others_is_the_smallest_error(tmp_path):
    rates = tuple(f"learning_rate={rate},epochs={n}" for rate in (1e-4, 1e-3, 0.01) for n in (1, 2))
    run = tuned_run(tmp_path, {"ce": rates, "smmd": ("lambda=1", "lambda=3")}, n=40)
    run.__dict__["tuning"] = run.tuning.assign(metric="mean_absolute_error")
    (axis,) = TuningTable().build(run).figure.axes
    assert list(axis.containers[0].lines[0].get_ydata()) == [50, 50, 50]  # not CE's 51 and 52


def test_a_tuned_loss_is_compared_with_tuned_ce_and_that_with_ce(tuned):
    against = tuned.comparisons.drop_duplicates("address").set_index("loss")["against_loss"]
    assert set(against["smmd[tuned]"]) == {"ce[tuned]"}
    assert set(against["ce[tuned]"]) == {"ce"}
    assert set(against["smmd"]) == {"ce"}
    data = Verdict().build(tuned).data
    rows = data[data["metric"] == "exact_match"].set_index("loss")
    assert {*rows.index} == {"ce", "ce[tuned]", "smmd", "smmd[tuned]"}  # ce: the noise floor
    value = tuned.metrics[tuned.metrics["metric"] == "exact_match"]
    mean = value.groupby("loss", observed=True)["value"].mean()
    tuned_gain = mean["smmd[tuned]"] - mean["ce[tuned]"]
    assert rows.loc["smmd[tuned]", "difference"] == pytest.approx(tuned_gain)


def with_beams(run):
    """The run measured again with beams: the completion, and the numbers around it."""
    for content in run.rows:
        cell, rng = run.current(content["address"]), np.random.default_rng(0)
        before, probes = (pd.read_parquet(cell.place(n)) for n in ("completions", "probes"))
        rows = [
            row
            for uid, text in zip(before["uid"], before["completion"], strict=True)
            for row in ((uid, text, 0.5), (uid, str(rng.integers(1, 9)), 0.3), (uid, "20", 0.1))
        ]
        beams = pd.DataFrame(rows, columns=["uid", "text", "p"])
        beams["log_probability"] = np.log(beams.pop("p"))
        task = task_of(content["task"])
        scores, metrics = measure(task, before, beams=beams, rules=RULES, resamples=20)
        write_measured(cell, before, probes, scores, metrics)
    shutil.rmtree(run.path / "compare")
    write_comparisons(read_run(run.path), task_of, resamples=20)
    return read_run(run.path)


@pytest.fixture(scope="module")
def ruled(tmp_path_factory):
    return with_beams(quick_run(tmp_path_factory.mktemp("ruled"), losses=("ce", "smmd"), n=40))


def test_the_table_of_decoding_rules_is_as_it_was(ruled):
    assert DecodingTable().skip(ruled) is None
    assert_golden("decoding_rules", DecodingTable().build(ruled))


def test_each_value_is_that_of_the_metric_under_the_rule(ruled):
    data = DecodingTable().build(ruled).data
    known = ruled.metrics.set_index(["loss", "metric"])["value"]
    assert {*data["decoder"]} == {"greedy", "mean", "median"}
    assert {*data["name"]} == {"mean_absolute_error", "trimmed_absolute_error", "r_squared"}
    for row in data.to_dict("records"):
        assert row["value"] == known[row["loss"], row["metric"]]
        assert row["found"] == pytest.approx(0.9, abs=0.1)
    mean = data[(data["loss"] == "smmd") & (data["metric"] == "mean_absolute_error[mean]")]
    differences = ruled.comparisons.set_index(["loss", "metric"])["difference"]
    assert mean["gain"].item() == differences["smmd", "mean_absolute_error[mean]"]
