import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats.mstats import trimmed_mean
from sklearn.metrics import accuracy_score, mean_absolute_error, r2_score

from smmd_bench.contracts import (
    ExactMatch,
    MeanAbsoluteError,
    ParseFailureRate,
    RSquared,
    TextMatch,
    TrimmedAbsoluteError,
    TruncationRate,
)

SHARES = [ExactMatch(), TextMatch(), TruncationRate()]
ALL = [
    *SHARES,
    MeanAbsoluteError(),
    TrimmedAbsoluteError(),
    RSquared(),
    ParseFailureRate(),
]
values = st.floats(-1e6, 1e6, allow_subnormal=False)
pairs = st.integers(2, 30).flatmap(
    lambda n: st.tuples(
        arrays(float, n, elements=values), arrays(float, n, elements=values)
    )
)


@pytest.mark.parametrize("metric", SHARES, ids=lambda m: m.name)
def test_shares_are_scikit_learns_accuracy_in_percent(metric):
    right = np.random.default_rng(0).random(101) < 0.3
    assert metric.statistic(right) == pytest.approx(
        100 * accuracy_score(np.ones(101), right)
    )


@pytest.mark.parametrize("n", [1, 7, 10, 57, 100])
def test_the_trimmed_error_is_scipys_of_one_tail_with_the_fraction_of_an_example(n):
    errors = np.random.default_rng(n).exponential(size=n)
    tenfold = np.repeat(errors, 10)  # a tenth of which is a whole number
    expected = trimmed_mean(tenfold, limits=(0, 0.1), relative=True)
    assert TrimmedAbsoluteError().statistic(errors) == pytest.approx(expected)


@pytest.mark.parametrize("n", [1, 7, 10, 100])
def test_the_trimmed_error_is_finite_where_the_tenth_holds_what_overflows(n):
    errors = np.random.default_rng(n).exponential(size=n)
    wild = np.where(errors == errors.max(), np.inf, errors)
    assert np.isfinite(TrimmedAbsoluteError().statistic(wild)) == (n >= 10)


@given(pairs)
def test_mean_absolute_error_is_scikit_learns(pair):
    answer, parsed = pair
    value = MeanAbsoluteError().statistic(np.abs(answer - parsed))
    assert value == pytest.approx(mean_absolute_error(answer, parsed))


@given(pairs)
def test_r_squared_is_scikit_learns(pair):
    answer, parsed = pair
    value = RSquared().statistic(answer, parsed)
    if np.ptp(answer) == 0:
        assert np.isnan(value)
    elif np.ptp(answer) > 1e-3:  # below that float64 itself is the difference
        assert value == pytest.approx(r2_score(answer, parsed), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("metric", ALL, ids=lambda m: m.name)
@pytest.mark.parametrize("axis", [0, -1])
def test_a_batch_of_resamples_gives_what_each_gives_alone(metric, axis):
    columns = np.random.default_rng(1).normal(size=(len(metric.columns), 4, 50))
    together = metric.statistic(*(np.moveaxis(c, -1, axis) for c in columns), axis=axis)
    assert together == pytest.approx(
        [float(metric.statistic(*columns[:, row])) for row in range(4)]
    )


def test_huge_errors_count_and_what_has_no_finite_value_warns_of_nothing():
    errors = np.array([0.0] * 99 + [1e40])
    assert MeanAbsoluteError().statistic(errors) == pytest.approx(1e38)
    assert np.isinf(MeanAbsoluteError().statistic(np.array([1e308, 1e308])))
    assert np.isneginf(
        RSquared().statistic(np.array([1.0, 2.0]), np.array([1e200, 1.0]))
    )
    assert np.isnan(RSquared().statistic(np.full(5, 0.1), np.arange(5.0)))
