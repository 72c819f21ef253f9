"""The one test of all tables, at its edges; the whole is held to references in tests/reports."""

import math

import pandas as pd
import pytest
from scipy import stats

from smmd_bench.scoring.gain import (
    OVER_EXAMPLES,
    OVER_SEEDS,
    OVER_SEEDS_ALONE,
    RECIPES,
    gain_of,
    smallest_difference,
)


def cells(*differences, jackknife=None, seeds=None, **values):
    usual = {"low": -1.0, "high": 3.0, "p": 0.2, "b": None, "c": None, "n": 9, "against": "x"}
    rows = [
        {**usual, **values, "difference": d, "seed": at, "jackknife": jackknife and jackknife[at]}
        for at, d in enumerate(differences)
    ]
    frame = pd.DataFrame(rows)
    return frame if seeds is None else frame.assign(seed=seeds)


def test_a_metric_that_is_no_share_has_no_discordant_examples():
    found = gain_of(cells(1.0))
    assert (found["p"], found["low"], found["high"]) == (0.2, -1.0, 3.0)
    assert math.isnan(found["discordant"])
    assert found["interval"] == OVER_EXAMPLES
    power = stats.norm.cdf(smallest_difference(found, 0.05) / found["error"] - 1.96)
    assert power == pytest.approx(0.8, abs=1e-3)


def test_without_an_interval_there_is_no_error():
    found = gain_of(cells(1.0, low=None, high=None, p=None))
    assert math.isnan(found["error"])
    assert math.isnan(smallest_difference(found, 0.05))


def test_several_seeds_without_pseudo_values_speak_of_seeds_alone():
    found = gain_of(cells(1.0, 2.0, 4.0))
    assert found["interval"] == OVER_SEEDS_ALONE
    assert found["p"] == pytest.approx(stats.ttest_1samp([1.0, 2.0, 4.0], 0).pvalue)


def test_several_seeds_with_pseudo_values_speak_of_examples_too():
    found = gain_of(cells(1.0, 2.0, jackknife=[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]))
    assert found["interval"] == OVER_SEEDS


def test_seeds_and_examples_that_never_differ_have_the_interval_of_the_examples():
    found = gain_of(cells(0.0, 0.0, jackknife=[[0.0] * 9, [0.0] * 9]))
    assert (found["low"], found["high"], found["p"]) == (-1.0, 3.0, 1.0)


def test_two_recipes_of_one_seed_are_not_two_seeds():
    found = gain_of(cells(1.0, 2.0, seeds=[0, 0]))
    assert found["interval"] == RECIPES
    assert math.isnan(found["p"])
