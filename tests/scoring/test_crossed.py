"""The mixed model against statsmodels' own, and against what it says in repeated draws."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.regression.mixed_linear_model import MixedLM

from smmd_bench.contracts import ExactMatch, MeanAbsoluteError, RSquared
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.scoring.crossed import GROUPS, fit, fit_cells, pseudo_values
from smmd_bench.scoring.statistics import paired_difference

from .test_statistics import scored


def drawn(seeds, examples, rng, of_seed=1.0, of_example=2.0, of_both=1.5, mean=0.7):
    return (
        mean
        + of_seed * rng.standard_normal((seeds, 1))
        + of_example * rng.standard_normal((1, examples))
        + of_both * rng.standard_normal((seeds, examples))
    )


def test_the_error_is_that_of_the_mixed_model_by_restricted_maximum_likelihood():
    table = drawn(6, 25, np.random.default_rng(3))
    long = (
        pd.DataFrame(table)
        .stack()
        .rename("y")
        .rename_axis(["seed", "example"])
        .reset_index()
    )

    # Effects that cross are components of one group that holds all rows.
    model = MixedLM.from_formula(
        "y ~ 1",
        long,
        groups=np.ones(len(long)),
        re_formula="0",
        vc_formula={"seed": "0 + C(seed)", "example": "0 + C(example)"},
    )
    fitted = model.fit(reml=True)
    assert fitted.converged
    assert fit(table).error == pytest.approx(fitted.bse["Intercept"], rel=1e-3)
    assert table.mean() == pytest.approx(fitted.fe_params["Intercept"], abs=1e-6)


def test_of_one_seed_it_is_the_t_test_over_the_examples():
    values = np.random.default_rng(0).normal(0.3, 1, 60)
    model = fit([values])
    assert model.error == pytest.approx(stats.sem(values))
    assert model.df == 59


def test_without_variance_of_examples_it_is_the_t_test_over_the_seeds():
    seeds = np.array([1.0, 2.5, 0.5])
    model = fit(np.repeat(seeds[:, None], 40, axis=1))
    assert model.error == pytest.approx(stats.sem(seeds))
    assert model.df == 2


@pytest.mark.parametrize(
    ("seeds", "least"), [(2, 0.89), (3, 0.91), (5, 0.93), (10, 0.93)]
)
@pytest.mark.parametrize("of_seed", [0.0, 0.1, 0.4])
def test_about_95_percent_of_intervals_hold_the_truth(seeds, least, of_seed):
    rng = np.random.default_rng(seeds)
    hits = 0
    for _ in range(600):
        table = drawn(seeds, 100, rng, of_seed=of_seed)
        model = fit(table)
        low, high = stats.t.interval(0.95, model.df, table.mean(), model.error)
        hits += low <= 0.7 <= high
    assert least <= hits / 600 <= 0.99


def test_more_seeds_and_examples_are_predicted_by_what_they_give():
    pilot = fit(drawn(40, 400, np.random.default_rng(4)))
    for seeds, examples in ((5, 400), (10, 1600), (40, 200)):
        # The variances that `drawn` has: of a seed 1, of an example 4, of both 2.25.
        expected = np.sqrt(1 / seeds + 4 / examples + 2.25 / (seeds * examples))
        planned = pilot.planned(seeds, examples / 400)
        assert planned.error == pytest.approx(expected, rel=0.2)

    repeated = pilot.planned(40)
    assert (repeated.error, repeated.df) == pytest.approx((pilot.error, pilot.df))


def test_a_pilot_of_one_seed_knows_nothing_of_other_seeds():
    pilot = fit([np.random.default_rng(0).normal(0, 2, 100)])
    assert pilot.planned(1, 4).error == pytest.approx(pilot.error / 2)
    # The least: none of its spread is repeated, so that 5 seeds of 4 times the examples are 20.
    planned = pilot.planned(5, 4)
    assert planned.error == pytest.approx(pilot.error / np.sqrt(20))
    assert planned.df == 99


def test_cells_without_pseudo_values_are_tested_over_their_seeds():
    cells = pd.DataFrame(
        {"difference": [1.0, 2.5, 0.5], "jackknife": [None, [1.0, 2.0], None]}
    )
    model = fit_cells(cells)
    assert model.error == pytest.approx(stats.sem(cells["difference"]))
    assert model.df == 2

    table = [[1.0, 1.0], [2.0, 3.0], [0.5, 0.5]]
    assert fit_cells(cells.assign(jackknife=table)) == fit(table)


TASKS = ("arithmetic", "chartqa", "clock_time", "gsm8k", "samsum")
METRICS = {
    metric.name: metric for task in TASKS for metric in load_task(task).metrics()
}


def answered(n, seed, spread):
    """A scored frame with the columns of every metric; all seeds answer the same examples."""
    of_examples = np.random.default_rng(99)
    answer = of_examples.normal(0, 10, n)
    hardness = of_examples.exponential(1, n)

    rng = np.random.default_rng(seed)
    parsed = answer + spread * hardness * rng.standard_normal(n)
    error = np.abs(parsed - answer)
    frame = pd.DataFrame(
        {"uid": range(n), "answer": answer, "parsed": parsed, "error": error}
    )
    frame["valid"] = rng.random(n) < 0.95

    # ROUGE is a share of words; what other metrics count is right or wrong.
    columns = {column for metric in METRICS.values() for column in metric.columns}
    for column in sorted(columns - {*frame}):
        if column.startswith("rouge"):
            frame[column] = rng.random(n) ** hardness
        else:
            frame[column] = error < 2 * rng.random(n)
    return frame


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("n", [53, 201, 333, 1319])
def test_pseudo_values_have_the_mean_and_the_error_of_the_difference(name, n):
    sides = METRICS[name], answered(n, 1, 1.3), answered(n, 2, 1.0)
    values = pseudo_values(*sides)
    assert len(values) in (n, GROUPS)

    mean = np.mean(values)
    error = stats.sem(values)
    bootstrap = paired_difference(*sides)
    assert mean == pytest.approx(bootstrap.difference, abs=error / 50)

    # The bootstrap's error, of which its interval is 3.92 wide; of few examples both are rough.
    width = bootstrap.high - bootstrap.low
    bootstrap_error = width / 3.92
    tolerance = 0.2 if n > 200 else 0.35
    assert error == pytest.approx(bootstrap_error, rel=tolerance)


@given(st.integers(2, 500), st.integers(0, 2**32 - 1), st.sampled_from([*METRICS]))
def test_the_mean_of_pseudo_values_is_the_difference_whatever_n_is(n, seed, name):
    sides = METRICS[name], answered(n, seed, 1.3), answered(n, seed + 1, 1.0)
    values = pseudo_values(*sides)
    if values is not None:
        expected = paired_difference(*sides, resamples=2).difference
        tolerance = stats.sem(values) / 50 + 1e-6
        assert np.mean(values) == pytest.approx(expected, abs=tolerance)


def test_seeds_differ_no_more_by_their_pseudo_values_than_by_their_differences():
    """Trimming whole examples, three differences of 0.03 had an interval of 3 on either side."""
    metric = METRICS["trimmed_absolute_error"]
    frames = [answered(200, seed, 1.0).assign(valid=True) for seed in range(1, 7)]
    pairs = [*zip(frames[::2], frames[1::2], strict=True)]

    model = fit([pseudo_values(metric, *pair) for pair in pairs])
    differences = [paired_difference(metric, *pair).difference for pair in pairs]
    assert model.of_seed == pytest.approx(200 * np.var(differences, ddof=1), rel=1e-4)


def test_a_share_is_its_differences_by_example_and_equal_differences_stay_equal():
    a, b = scored(500, 1), scored(500, 2)
    differences = 100.0 * (a["exact"].astype(float) - b["exact"].astype(float))
    assert pseudo_values(ExactMatch(), a, b) == differences.tolist()

    # Equal differences have equal values: rounding errors would be all their error.
    frame = scored(7).assign(valid=True, error=np.arange(7) / 3)
    larger = frame.assign(error=frame["error"] + 1)
    assert pseudo_values(MeanAbsoluteError(), larger, frame) == [1] * 7


def test_what_has_no_value_has_no_pseudo_values():
    frame = scored(40)
    assert pseudo_values(RSquared(), frame.assign(answer=1.0), frame) is None
    assert pseudo_values(ExactMatch(), frame[:1], frame[:1]) is None
    assert pseudo_values(MeanAbsoluteError(), frame.assign(valid=False), frame) is None
