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

RATES = tuple(
    f"learning_rate={rate},epochs={n}" for rate in (1e-4, 1e-3, 0.01) for n in (1, 2)
)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """Two seeds: CE chooses either rate, SMMD lambda=10 twice."""
    return tuned_run(tmp_path_factory.mktemp("tuned"), n=60)


def test_the_table_of_a_tuning_is_as_it_was(tuned):
    artefact = TuningTable().build(tuned)
    assert artefact.figure is None
    assert_golden("tuning_two_seeds", artefact)


def test_settings_with_three_values_are_curves_of_validation_at_the_best_of_the_others(
    tmp_path,
):
    lambdas = ("lambda=1", "lambda=3", "lambda=10", "lambda=30")
    run = tuned_run(tmp_path, {"ce": RATES, "smmd": lambdas}, n=40)
    rates, weights = TuningTable().build(run).figure.axes
    assert rates.get_xlabel() == "learning_rate"
    assert weights.get_xlabel() == "λ"

    # CE chooses its first setting with seed 0 (51 %), its second one with seed 1 (52 %)
    x, y = points_of(rates)
    assert [*x] == [1e-4, 1e-3, 0.01]
    assert [*y] == [51.5, 50, 50]
    x, y = points_of(weights)
    assert [*x] == [1, 3, 10, 30]
    assert [*y] == [50, 51.5, 50, 50]


def points_of(axis):
    """The places and heights of the points of the first curve."""
    return axis.containers[0].lines[0].get_data()


def test_settings_that_validate_as_well_are_counted_by_seed(tmp_path):
    lambdas = ("lambda=1", "lambda=3", "lambda=10")
    run = tuned_run(tmp_path, {"ce": RATES, "smmd": lambdas}, n=40)
    is_zero = run.tuning["loss"].eq("smmd[tuned]") & run.tuning["seed"].eq(0)
    chosen = run.tuning.loc[is_zero & run.tuning["chosen"], "value"].item()
    tied = run.tuning["value"].where(~is_zero, chosen)
    run.__dict__["tuning"] = run.tuning.assign(value=tied)

    artefact = TuningTable().build(run)
    ties = artefact.table.set_index("Loss")["Ties"]
    assert ties["SMMD"] == "2, 0"
    assert "Ties: other settings that validate as well" in artefact.caption


def test_the_best_of_the_others_is_the_smallest_error(tmp_path):
    run = tuned_run(tmp_path, {"ce": RATES, "smmd": ("lambda=1", "lambda=3")}, n=40)
    run.__dict__["tuning"] = run.tuning.assign(metric="mean_absolute_error")
    (axis,) = TuningTable().build(run).figure.axes
    _, y = points_of(axis)
    assert [*y] == [50, 50, 50]  # not CE's 51 and 52


def test_a_tuned_loss_is_compared_with_tuned_ce_and_that_with_ce(tuned):
    comparisons = tuned.comparisons.drop_duplicates("address")
    references = comparisons.groupby("loss", observed=True)["against_loss"].unique()
    expected = {"smmd[tuned]": "ce[tuned]", "ce[tuned]": "ce", "smmd": "ce"}
    for loss, reference in expected.items():
        assert [*references[loss]] == [reference]

    # CE itself is in the verdict as the noise floor.
    data = Verdict().build(tuned).data
    rows = data[data["metric"] == "exact_match"]
    rows = rows.set_index("loss")
    assert {*rows.index} == {"ce", *expected}

    exact = tuned.metrics[tuned.metrics["metric"] == "exact_match"]
    by_loss = exact.groupby("loss", observed=True)
    means = by_loss["value"].mean()
    gain = means["smmd[tuned]"] - means["ce[tuned]"]
    assert rows.loc["smmd[tuned]", "difference"] == pytest.approx(gain)


def with_beams(run):
    """The run measured again with beams: the completion, and the numbers around it."""
    for content in run.rows:
        cell = run.current(content["address"])
        completions = pd.read_parquet(cell.place("completions"))
        probes = pd.read_parquet(cell.place("probes"))
        beams = draw_beams(completions)
        scores, metrics = measure(
            task_of(content["task"]),
            completions,
            beams=beams,
            rules=RULES,
            resamples=20,
        )
        write_measured(cell, completions, probes, scores, metrics)

    shutil.rmtree(run.path / "compare")
    write_comparisons(read_run(run.path), task_of, resamples=20)
    return read_run(run.path)


def draw_beams(completions):
    """Three texts of each example, the completion first."""
    rng = np.random.default_rng(0)
    rows = []
    for uid, text in zip(completions["uid"], completions["completion"], strict=True):
        rows.append((uid, text, np.log(0.5)))
        rows.append((uid, str(rng.integers(1, 9)), np.log(0.3)))
        rows.append((uid, "20", np.log(0.1)))
    return pd.DataFrame(rows, columns=["uid", "text", "log_probability"])


@pytest.fixture(scope="module")
def ruled(tmp_path_factory):
    return with_beams(
        quick_run(tmp_path_factory.mktemp("ruled"), losses=("ce", "smmd"), n=40)
    )


def test_the_table_of_decoding_rules_is_as_it_was(ruled):
    assert_golden("decoding_rules", DecodingTable().build(ruled))


def test_each_value_is_that_of_the_metric_under_the_rule(ruled):
    data = DecodingTable().build(ruled).data
    assert {*data["decoder"]} == {"greedy", "mean", "median"}
    assert {*data["name"]} == {
        "mean_absolute_error",
        "trimmed_absolute_error",
        "r_squared",
    }
    assert data["found"].to_numpy() == pytest.approx(0.9, abs=0.1)

    key = ["loss", "metric"]
    values = ruled.metrics.set_index(key)["value"]
    rows = data.set_index(key)
    assert rows["value"].equals(values[rows.index])

    under_mean = ("smmd", "mean_absolute_error[mean]")
    differences = ruled.comparisons.set_index(key)["difference"]
    assert rows.loc[under_mean, "gain"] == differences[under_mean]
