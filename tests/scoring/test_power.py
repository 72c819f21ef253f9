import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import NormalIndPower, TTestPower

from smmd_bench.scoring.power import smallest_by_mcnemar, smallest_by_t


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("level", [0.05, 0.0125])
def test_the_smallest_difference_has_the_power_of_the_t_test(seeds, level):
    deviation = 2.0
    found = smallest_by_t(deviation / np.sqrt(seeds), seeds - 1, level)
    assert TTestPower().power(found / deviation, seeds, level) == pytest.approx(0.8, abs=0.01)


def test_with_many_degrees_of_freedom_it_has_the_power_of_the_z_test():
    found = smallest_by_t(0.5, 1e6)
    power = NormalIndPower(ddof=0).power(found / 0.5, 1, 0.05, ratio=0)
    assert power == pytest.approx(0.8, abs=0.01)


def test_without_an_error_there_is_none():
    assert np.isnan(smallest_by_t(0.0, 2))
    assert np.isnan(smallest_by_t(np.nan, 2))


@pytest.mark.parametrize(("discordant", "n"), [(10, 2000), (60, 2000), (12, 40)])
def test_the_smallest_difference_of_exact_match_has_the_power_of_mcnemars_test(discordant, n):
    found = smallest_by_mcnemar(discordant, n)
    wins = stats.binom(discordant, (1 + found * n / discordant) / 2)
    power = sum(
        wins.pmf(k) for k in range(discordant + 1) if stats.binomtest(k, discordant).pvalue < 0.05
    )
    assert power == pytest.approx(0.8, abs=0.02)


def test_too_few_discordant_examples_show_no_difference_below_what_the_test_needs():
    assert smallest_by_mcnemar(1, 2000) == pytest.approx(6 / 2000)
    assert stats.binomtest(6, 6).pvalue < 0.05 < stats.binomtest(5, 5).pvalue
