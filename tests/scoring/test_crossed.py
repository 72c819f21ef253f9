"""The mixed model against statsmodels' own, and against what it says in repeated draws."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.regression.mixed_linear_model import MixedLM

from smmd_bench.contracts import ExactMatch, MeanAbsoluteError, RSquared
from smmd_bench.scoring.crossed import fit, fit_cells, pseudo_values
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
    long = pd.DataFrame(table).stack().rename("y").rename_axis(["seed", "example"]).reset_index()
    model = MixedLM.from_formula(
        "y ~ 1", long, groups=np.ones(len(long)), re_formula="0",
        vc_formula={"seed": "0 + C(seed)", "example": "0 + C(example)"},
    )  # fmt: skip
    fitted = model.fit(reml=True)
    assert fitted.converged
    assert fit(table).error == pytest.approx(fitted.bse["Intercept"], rel=1e-3)
    assert table.mean() == pytest.approx(fitted.fe_params["Intercept"], abs=1e-6)


def test_of_one_seed_it_is_the_t_test_over_the_examples():
    values = np.random.default_rng(0).normal(0.3, 1, 60)
    found = fit([values])
    assert found.error == pytest.approx(stats.sem(values))
    assert found.df == 59


def test_without_variance_of_examples_it_is_the_t_test_over_the_seeds():
    seeds = np.array([1.0, 2.5, 0.5])
    found = fit(np.repeat(seeds[:, None], 40, axis=1))
    assert (found.error, found.df) == (pytest.approx(stats.sem(seeds)), 2)


@pytest.mark.parametrize(("seeds", "least"), [(2, 0.89), (3, 0.91), (5, 0.93), (10, 0.93)])
@pytest.mark.parametrize("of_seed", [0.0, 0.1, 0.4])
def test_about_95_percent_of_intervals_hold_the_truth(seeds, least, of_seed):
    rng = np.random.default_rng(seeds)
    held = []
    for _ in range(600):
        table = drawn(seeds, 100, rng, of_seed=of_seed)
        found = fit(table)
        low, high = stats.t.interval(0.95, found.df, table.mean(), found.error)
        held.append(low <= 0.7 <= high)
    assert least <= np.mean(held) <= 0.99


def test_more_seeds_and_examples_are_predicted_by_what_they_give():
    rng = np.random.default_rng(4)
    pilot = fit(drawn(40, 400, rng))
    for seeds, examples in ((5, 400), (10, 1600), (40, 200)):
        expected = np.sqrt(1 / seeds + 4 / examples + 2.25 / (seeds * examples))
        assert pilot.planned(seeds, examples / 400).error == pytest.approx(expected, rel=0.2)
    same = pilot.planned(40)
    assert (same.error, same.df) == pytest.approx((pilot.error, pilot.df))


def test_a_pilot_of_one_seed_knows_nothing_of_other_seeds():
    pilot = fit([np.random.default_rng(0).normal(0, 2, 100)])
    assert pilot.planned(1, 4).error == pytest.approx(pilot.error / 2)
    planned = pilot.planned(5, 4)  # the least: nothing of its spread is repeated
    assert (planned.error, planned.df) == (pytest.approx(pilot.error / np.sqrt(20)), 99)


def test_cells_without_pseudo_values_are_tested_over_their_seeds():
    cells = pd.DataFrame({"difference": [1.0, 2.5, 0.5], "jackknife": [None, [1.0, 2.0], None]})
    found = fit_cells(cells)
    assert (found.error, found.df) == (pytest.approx(stats.sem(cells["difference"])), 2)
    whole = cells.assign(jackknife=[[1.0, 1.0], [2.0, 3.0], [0.5, 0.5]])
    assert fit_cells(whole) == fit([[1.0, 1.0], [2.0, 3.0], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("metric", "n"),
    [*[(ExactMatch(), n) for n in (201, 1999)], (MeanAbsoluteError(), 1000), (RSquared(), 1000)],
)
def test_pseudo_values_have_the_mean_and_the_error_of_the_difference(metric, n):
    a, b = scored(n, 1, 0.6), scored(n, 2)
    found = np.array(pseudo_values(metric, a, b))
    assert n == len(found) if isinstance(metric, ExactMatch) else 100 < len(found) <= 200
    expected = paired_difference(metric, a, b)
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert found.mean() == pytest.approx(expected.difference, abs=error / 2)
    assert error == pytest.approx((expected.high - expected.low) / 3.92, rel=0.15)


def test_a_share_is_its_differences_example_by_example():
    a, b = scored(500, 1), scored(500, 2)
    differences = 100.0 * (a["exact"].astype(float) - b["exact"].astype(float))
    found = pseudo_values(ExactMatch(), a, b)
    assert found == differences.tolist()


def test_what_has_no_value_has_no_pseudo_values():
    frame = scored(40)
    assert pseudo_values(RSquared(), frame.assign(answer=1.0), frame) is None
    assert pseudo_values(ExactMatch(), frame[:1], frame[:1]) is None
    assert pseudo_values(MeanAbsoluteError(), frame.assign(valid=False), frame) is None
