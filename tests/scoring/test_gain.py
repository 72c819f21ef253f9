"""The one test of all tables, at its edges; the whole is held to references in tests/reports."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import NormalIndPower, TTestPower

from smmd_bench.contracts.metrics import MeanAbsoluteError
from smmd_bench.scoring import gain
from smmd_bench.scoring.crossed import fit, pseudo_values
from smmd_bench.scoring.proportions import tango


def cells(*differences, jackknife=None, seeds=None, **values):
    usual = {"low": -1.0, "high": 3.0, "p": 0.2, "b": None, "c": None, "n": 9, "against": "x"}
    rows = [
        {**usual, **values, "difference": d, "seed": at, "jackknife": jackknife and jackknife[at]}
        for at, d in enumerate(differences)
    ]
    frame = pd.DataFrame(rows)
    return frame if seeds is None else frame.assign(seed=seeds)


def test_a_metric_that_is_no_share_has_no_discordant_examples():
    found = gain.gain_of(cells(1.0))
    assert (found["p"], found["low"], found["high"]) == (0.2, -1.0, 3.0)
    assert math.isnan(found["discordant"])
    assert found["interval"] == gain.OVER_EXAMPLES
    power = stats.norm.cdf(gain.smallest_difference(found, 0.05) / found["error"] - 1.96)
    assert power == pytest.approx(0.8, abs=1e-3)


def of_errors(*changes, p, n=200):
    """p of one seed's MAE where so many answers have these other errors, by the pseudo-values."""
    other = pd.DataFrame({"uid": range(n), "error": np.linspace(0.1, 9.0, n), "valid": True})
    mine = other.assign(error=other["error"] + np.pad(changes, (0, n - len(changes))))
    jackknife = pseudo_values(MeanAbsoluteError(), mine, other)
    return gain.gain_of(cells(0.0, jackknife=[jackknife], p=p))["p"]


def test_where_few_examples_differ_every_sign_is_tried():
    """Three gross errors decide this mean, of which the bootstrap is sure."""
    values = [-8.0, -2.5, -1.6, 0.1]
    sums = [abs(np.dot(signs, values)) for signs in itertools.product((1, -1), repeat=4)]
    assert of_errors(*values, p=0.006) == np.mean(np.array(sums) >= abs(sum(values))) == 0.25
    assert of_errors(*values, p=0.4) == 0.4
    assert of_errors(-9.0, p=0.01) == 1.0
    assert of_errors(*[-1.0] * gain.FEW, p=0.006) == 0.006
    assert of_errors(p=1.0) == 1.0


def test_several_seeds_speak_of_examples_where_they_have_pseudo_values():
    found = gain.gain_of(cells(1.0, 2.0, 4.0))
    assert found["interval"] == gain.OVER_SEEDS_ALONE
    assert found["p"] == pytest.approx(stats.ttest_1samp([1.0, 2.0, 4.0], 0).pvalue)
    found = gain.gain_of(cells(1.0, 2.0, jackknife=[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]))
    assert found["interval"] == gain.OVER_SEEDS


def test_seeds_and_examples_that_never_differ_have_the_interval_of_the_examples():
    for same in (0.0, 100.0):
        found = gain.gain_of(cells(same, same, jackknife=[[same] * 9, [same] * 9], b=0, c=0))
        assert (found["low"], found["high"], found["p"]) == (-1.0, 3.0, 0.2)
        power = stats.binom.sf(5, 9, gain.smallest_difference(found, 0.05) / 100)  # six of one side
        assert power == pytest.approx(0.8, abs=1e-4)
    assert math.isnan(
        gain.gain_of(cells(0.0, 0.0, jackknife=[[0.0] * 9] * 2, low=0, high=0))["low"]
    )


def few(discordant):
    """Three seeds of 80 examples, of which so many have one pair on the loss's side."""
    table = np.zeros((3, 80))
    table.flat[np.arange(discordant) * 7] = 100
    values = {"n": 80, "c": 0, "jackknife": [list(map(float, row)) for row in table]}
    return cells(*table.mean(axis=1), **values).assign(b=(table > 0).sum(axis=1)), fit(table)


def test_few_discordant_pairs_of_several_seeds_do_not_make_a_narrow_interval():
    frame, model = few(1)
    found, low_high = gain.gain_of(frame), tango(1, 0, 240)
    assert (found["low"], found["high"]) == pytest.approx([100 * end for end in low_high])
    assert found["p"] == 1.0
    power = stats.binom.sf(5, 240, gain.smallest_difference(found, 0.05) / 100)  # six of one side
    assert power == pytest.approx(0.8, abs=1e-4)
    frame, model = few(9)
    found = gain.gain_of(frame)
    assert found["p"] >= 2 * stats.t.sf(100 * 9 / 240 / model.error, model.df)
    frame, model = few(10)
    found = gain.gain_of(frame)
    assert found["p"] == pytest.approx(2 * stats.t.sf(100 * 10 / 240 / model.error, model.df))
    assert math.isnan(found["discordant"])


def test_two_recipes_of_one_seed_are_not_two_seeds():
    found = gain.gain_of(cells(1.0, 2.0, seeds=[0, 0]))
    assert found["interval"] == gain.RECIPES
    assert math.isnan(found["p"])


@pytest.mark.parametrize("seeds", [4, 5, 10])
@pytest.mark.parametrize("level", [0.05, 0.0125])
def test_the_smallest_difference_has_the_power_of_the_t_test(seeds, level):
    deviation = 2.0
    found = gain.smallest_by_t(deviation / np.sqrt(seeds), seeds - 1, level)
    assert TTestPower().power(found / deviation, seeds, level) == pytest.approx(0.8, abs=0.01)


def test_with_many_degrees_of_freedom_it_has_the_power_of_the_z_test():
    found = gain.smallest_by_t(0.5, 1e6, 0.05)
    power = NormalIndPower(ddof=0).power(found / 0.5, 1, 0.05, ratio=0)
    assert power == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize(("error", "df"), [(0.0, 4), (np.nan, 4), (1.0, 1), (1.0, 2.9)])
def test_without_an_error_or_degrees_of_freedom_there_is_none(error, df):
    assert np.isnan(gain.smallest_by_t(error, df, 0.05))
    assert gain.smallest_by_t(1.0, 3, 0.05) > 0


@pytest.mark.parametrize(
    ("discordant", "n"), [(0, 2000), (5, 2000), (10, 2000), (20, 2000), (600, 2000), (12, 40)]
)
def test_the_smallest_difference_of_exact_match_is_found_in_four_of_five_samples(discordant, n):
    found = gain.smallest_by_mcnemar(discordant, n, 0.05)
    share, rng = max(discordant / n, found), np.random.default_rng(0)
    better, worse = (share + found) / 2, (share - found) / 2
    samples = rng.multinomial(n, [better, worse, 1 - share], 4000)
    passed = {
        (b, c): b > c and stats.binomtest(b, b + c).pvalue < 0.05
        for b, c in {(int(b), int(c)) for b, c, _ in samples}
    }
    power = np.mean([passed[b, c] for b, c, _ in samples])
    assert power == pytest.approx(0.8, abs=0.02)


def test_too_few_examples_show_no_difference():
    assert stats.binomtest(6, 6).pvalue < 0.05 < stats.binomtest(5, 5).pvalue
    assert np.isnan(gain.smallest_by_mcnemar(3, 5, 0.05))
    assert gain.smallest_by_mcnemar(0, 6, 0.05) == pytest.approx(0.8 ** (1 / 6), abs=1e-4)


@given(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_that_of_statsmodels_over_the_tests_that_there_are(p_values):
    p = np.array(p_values, dtype=np.float64)
    is_tested = np.isfinite(p)
    expected = np.full(len(p), np.nan)
    if is_tested.any():
        _, expected[is_tested], _, _ = multipletests(p[is_tested], method="holm")
    np.testing.assert_allclose(gain.holm(p), expected, rtol=1e-12)
