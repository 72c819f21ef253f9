import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import NormalIndPower, TTestPower

from smmd_bench.scoring.gain import smallest_by_mcnemar, smallest_by_t


@pytest.mark.parametrize("seeds", [4, 5, 10])
@pytest.mark.parametrize("level", [0.05, 0.0125])
def test_the_smallest_difference_has_the_power_of_the_t_test(seeds, level):
    deviation = 2.0
    found = smallest_by_t(deviation / np.sqrt(seeds), seeds - 1, level)
    assert TTestPower().power(found / deviation, seeds, level) == pytest.approx(0.8, abs=0.01)


def test_with_many_degrees_of_freedom_it_has_the_power_of_the_z_test():
    found = smallest_by_t(0.5, 1e6, 0.05)
    power = NormalIndPower(ddof=0).power(found / 0.5, 1, 0.05, ratio=0)
    assert power == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize(("error", "df"), [(0.0, 4), (np.nan, 4), (1.0, 1), (1.0, 2.9)])
def test_without_an_error_or_degrees_of_freedom_there_is_none(error, df):
    assert np.isnan(smallest_by_t(error, df, 0.05))
    assert smallest_by_t(1.0, 3, 0.05) > 0


@pytest.mark.parametrize(
    ("discordant", "n"), [(0, 2000), (5, 2000), (10, 2000), (20, 2000), (600, 2000), (12, 40)]
)
def test_the_smallest_difference_of_exact_match_is_found_in_four_of_five_samples(discordant, n):
    found = smallest_by_mcnemar(discordant, n, 0.05)
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
    assert np.isnan(smallest_by_mcnemar(3, 5, 0.05))
    assert smallest_by_mcnemar(0, 6, 0.05) == pytest.approx(0.8 ** (1 / 6), abs=1e-4)
