"""The one test of all tables, at its edges; the whole is held to references in tests/reports."""

import itertools
import math
from functools import cache

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


def cells(*differences, jackknife=None, **values):
    """Rows of comparisons, one a seed."""
    columns = {
        "low": -1.0,
        "high": 3.0,
        "p": 0.2,
        "b": None,
        "c": None,
        "n": 9,
        "against": "x",
    }
    columns |= {"seed": range(len(differences)), **values}
    frame = pd.DataFrame({"difference": differences, **columns})
    return frame.assign(jackknife=jackknife or [None] * len(differences))


def test_a_metric_that_is_no_share_has_no_discordant_examples():
    one_seed = gain.gain_of(cells(1.0))
    assert one_seed["p"] == 0.2
    assert one_seed["low"] == -1.0
    assert one_seed["high"] == 3.0
    assert math.isnan(one_seed["discordant"])
    assert one_seed["interval"] == gain.OVER_EXAMPLES
    in_errors = gain.smallest_difference(one_seed, 0.05) / one_seed["error"]
    assert stats.norm.cdf(in_errors - 1.96) == pytest.approx(0.8, abs=1e-3)


def p_of_errors(*changes, p, n=200):
    """p of one seed's MAE where so many answers have these other errors, by the pseudo-values."""
    other = pd.DataFrame(
        {"uid": range(n), "error": np.linspace(0.1, 9.0, n), "valid": True}
    )
    changed = other.assign(
        error=other["error"] + np.pad(changes, (0, n - len(changes)))
    )
    jackknife = pseudo_values(MeanAbsoluteError(), changed, other)
    return gain.gain_of(cells(0.0, jackknife=[jackknife], p=p))["p"]


def test_where_few_examples_differ_every_sign_is_tried():
    """Three gross errors decide this mean, of which the bootstrap is sure."""
    values = [-8.0, -2.5, -1.6, 0.1]
    sums = [
        abs(np.dot(signs, values)) for signs in itertools.product((1, -1), repeat=4)
    ]
    of_all_signs = np.mean(np.array(sums) >= abs(sum(values)))
    assert p_of_errors(*values, p=0.006) == of_all_signs == 0.25


@pytest.mark.parametrize(
    ("changes", "p", "expected"),
    [
        ([-8.0, -2.5, -1.6, 0.1], 0.4, 0.4),  # the larger p counts
        ([-9.0], 0.01, 1.0),  # one example has two signs, each as far from 0
        ([-1.0] * gain.FEW, 0.006, 0.006),  # enough of them for the bootstrap
        ([], 1.0, 1.0),
    ],
)
def test_the_p_of_signs_is_the_least_and_of_few_examples_alone(changes, p, expected):
    assert p_of_errors(*changes, p=p) == expected


def test_several_seeds_speak_of_examples_where_they_have_pseudo_values():
    seeds_alone = gain.gain_of(cells(1.0, 2.0, 4.0))
    assert seeds_alone["interval"] == gain.OVER_SEEDS_ALONE
    assert seeds_alone["p"] == pytest.approx(
        stats.ttest_1samp([1.0, 2.0, 4.0], 0).pvalue
    )

    of_both = gain.gain_of(
        cells(1.0, 2.0, jackknife=[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    )
    assert of_both["interval"] == gain.OVER_SEEDS


def power_of_six(result, n):
    """How often six of n pairs or more differ to one side: the fewest that McNemar's test finds."""
    return stats.binom.sf(5, n, gain.smallest_difference(result, 0.05) / 100)


@pytest.mark.parametrize("difference", [0.0, 100.0])
def test_seeds_and_examples_that_never_differ_have_the_interval_of_the_examples(
    difference,
):
    repeated = cells(difference, difference, jackknife=[[difference] * 9] * 2, b=0, c=0)
    result = gain.gain_of(repeated)
    assert result["low"] == -1.0
    assert result["high"] == 3.0
    assert result["p"] == 0.2
    assert power_of_six(result, 9) == pytest.approx(0.8, abs=1e-4)
    # An interval without a width covers no other examples.
    assert math.isnan(gain.gain_of(repeated.assign(low=0, high=0))["low"])


def few(discordant):
    """Three seeds of 80 examples, of which so many have one pair on the loss's side."""
    table = np.zeros((3, 80))
    table.flat[np.arange(discordant) * 7] = 100
    counts = {"n": 80, "b": (table > 0).sum(axis=1), "c": 0}
    return cells(*table.mean(axis=1), jackknife=table.tolist(), **counts), fit(table)


def test_few_discordant_pairs_of_several_seeds_do_not_make_a_narrow_interval():
    frame, _ = few(1)
    result = gain.gain_of(frame)
    of_all_pairs = [100 * bound for bound in tango(1, 0, 240)]
    assert (result["low"], result["high"]) == pytest.approx(of_all_pairs)
    assert result["p"] == 1.0
    assert power_of_six(result, 240) == pytest.approx(0.8, abs=1e-4)


def p_of_model(frame, model):
    return 2 * stats.t.sf(frame["difference"].mean() / model.error, model.df)


def test_ten_discordant_pairs_are_tested_by_the_seeds_and_examples_alone():
    frame, model = few(9)
    assert gain.gain_of(frame)["p"] >= p_of_model(frame, model)

    frame, model = few(10)
    result = gain.gain_of(frame)
    assert result["p"] == pytest.approx(p_of_model(frame, model))
    assert math.isnan(result["discordant"])


def test_two_recipes_of_one_seed_are_not_two_seeds():
    result = gain.gain_of(cells(1.0, 2.0, seed=0))
    assert result["interval"] == gain.RECIPES
    assert math.isnan(result["p"])


@pytest.mark.parametrize("seeds", [4, 5, 10])
@pytest.mark.parametrize("level", [0.05, 0.0125])
def test_the_smallest_difference_has_the_power_of_the_t_test(seeds, level):
    deviation = 2.0
    smallest = gain.smallest_by_t(deviation / np.sqrt(seeds), seeds - 1, level)
    power = TTestPower().power(smallest / deviation, seeds, level)
    assert power == pytest.approx(0.8, abs=0.01)


def test_with_many_degrees_of_freedom_it_has_the_power_of_the_z_test():
    smallest = gain.smallest_by_t(0.5, 1e6, 0.05)
    power = NormalIndPower(ddof=0).power(smallest / 0.5, 1, 0.05, ratio=0)
    assert power == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize(("error", "df"), [(0.0, 4), (np.nan, 4), (1.0, 1), (1.0, 2.9)])
def test_without_an_error_or_degrees_of_freedom_there_is_none(error, df):
    assert np.isnan(gain.smallest_by_t(error, df, 0.05))
    assert gain.smallest_by_t(1.0, 3, 0.05) > 0


@cache  # many samples have the same counts, and a test takes long
def is_better(b, c):
    return b > c and stats.binomtest(b, b + c).pvalue < 0.05


@pytest.mark.parametrize(
    ("discordant", "n"),
    [(0, 2000), (5, 2000), (10, 2000), (20, 2000), (600, 2000), (12, 40)],
)
def test_the_smallest_difference_of_exact_match_is_found_in_four_of_five_samples(
    discordant, n
):
    smallest = gain.smallest_by_mcnemar(discordant, n, 0.05)
    share = max(discordant / n, smallest)
    better = (share + smallest) / 2
    worse = (share - smallest) / 2
    shares = [better, worse, 1 - share]

    rng = np.random.default_rng(0)
    samples = rng.multinomial(n, shares, 4000).tolist()
    verdicts = [is_better(b, c) for b, c, _ in samples]
    power = np.mean(verdicts)
    assert power == pytest.approx(0.8, abs=0.02)


def test_too_few_examples_show_no_difference():
    assert stats.binomtest(6, 6).pvalue < 0.05 < stats.binomtest(5, 5).pvalue
    assert np.isnan(gain.smallest_by_mcnemar(3, 5, 0.05))
    assert gain.smallest_by_mcnemar(0, 6, 0.05) == pytest.approx(
        0.8 ** (1 / 6), abs=1e-4
    )


@given(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_that_of_statsmodels_over_the_tests_that_there_are(p_values):
    p = np.array(p_values, dtype=np.float64)
    is_tested = np.isfinite(p)
    expected = np.full(len(p), np.nan)
    if is_tested.any():
        _, expected[is_tested], _, _ = multipletests(p[is_tested], method="holm")
    np.testing.assert_allclose(gain.holm(p), expected, rtol=1e-12)
