"""The mixed model against statsmodels' own, and against what it says in repeated draws."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.regression.mixed_linear_model import MixedLM

from smmd_bench.scoring.crossed import fit, fit_cells


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


def test_a_seed_that_repeats_the_other_adds_nothing():
    one = np.random.default_rng(1).normal(0, 1, 50)
    assert fit([one, one]).error == pytest.approx(fit([one]).error)


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


def test_nothing_that_differs_gives_no_error():
    assert fit(np.zeros((3, 10))).error == 0
