import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from smmd_bench.contracts import (
    ExactMatch,
    MeanAbsoluteError,
    ParseFailureRate,
    RSquared,
)
from smmd_bench.scoring.proportions import tango
from smmd_bench.scoring.statistics import (
    Difference,
    Estimate,
    interval,
    over_seeds,
    p_of_resamples,
    paired_difference,
)


def scored(n=400, seed=0, accuracy=0.4):
    """A scored frame; every seed answers the same examples."""
    rng = np.random.default_rng(seed)
    answer = np.random.default_rng(99).normal(0, 10, n)
    exact = rng.random(n) < accuracy
    parsed = np.where(exact, answer, answer + rng.normal(0, 3, n))
    valid = exact | (rng.random(n) < 0.9)
    return pd.DataFrame(
        {
            "uid": [f"u{at}" for at in range(n)],
            "answer": answer,
            "parsed": np.where(valid, parsed, np.nan),
            "valid": valid,
            "exact": exact,
            "error": np.where(valid, np.abs(parsed - answer), np.nan),
        }
    )


FRAME = scored()
VALID = int(FRAME["valid"].sum())
A = scored(seed=1)
B = scored(seed=2)


def in_percent(bounds):
    return pytest.approx([100 * bound for bound in bounds])


@pytest.mark.parametrize(
    ("metric", "column"), [(ExactMatch(), "exact"), (ParseFailureRate(), "valid")]
)
def test_the_interval_of_a_share_is_wilsons_of_what_it_counts(metric, column):
    frame = scored(1000)
    # A rate of failures counts the completions that have no valid answer.
    counted = frame[column] if column == "exact" else ~frame[column]

    estimate = interval(metric, frame)
    assert estimate.value == pytest.approx(100 * counted.mean())
    assert estimate.n == 1000
    wilson = proportion_confint(counted.sum(), 1000, method="wilson")
    assert (estimate.low, estimate.high) == in_percent(wilson)


def test_the_difference_of_two_rates_of_failures_is_tangos_of_what_they_count():
    frame = scored(200)
    other = scored(200, 5)
    b = (~frame["valid"] & other["valid"]).sum()
    c = (frame["valid"] & ~other["valid"]).sum()

    difference = paired_difference(ParseFailureRate(), frame, other)
    assert difference.difference == pytest.approx(100 * (b - c) / 200)
    assert (difference.low, difference.high) == in_percent(tango(b, c, 200))


def test_metrics_of_a_subset_count_only_its_examples():
    estimate = interval(MeanAbsoluteError(), FRAME)
    assert estimate.n == VALID < 400
    assert estimate.value == pytest.approx(FRAME["error"].mean())


@pytest.mark.parametrize(
    ("metric", "frame", "expected"),
    [
        (ExactMatch(), scored(0, accuracy=1.0), Estimate(None, None, None, 0)),
        (RSquared(), scored(1, accuracy=1.0), Estimate(None, None, None, 1)),
        (MeanAbsoluteError(), FRAME.assign(valid=False), Estimate(None, None, None, 0)),
        (RSquared(), FRAME.assign(answer=3.0), Estimate(None, None, None, VALID)),
    ],
    ids=["no example", "one example", "none is valid", "a constant truth"],
)
def test_what_cannot_be_estimated_is_none_and_warns_of_nothing(metric, frame, expected):
    assert interval(metric, frame) == expected


def test_the_paired_difference_is_the_difference_of_the_values():
    better = scored(seed=1, accuracy=0.6)
    difference = paired_difference(ExactMatch(), better, B)
    expected = 100 * (better["exact"].mean() - B["exact"].mean())
    assert difference.difference == pytest.approx(expected)
    assert difference.low < difference.difference < difference.high


def test_shared_examples_are_paired_by_uid_and_not_by_place():
    shuffled = B.sample(frac=1, random_state=0)
    assert paired_difference(RSquared(), A, shuffled) == paired_difference(
        RSquared(), A, B
    )
    assert paired_difference(ExactMatch(), A[:300], B[100:]).n == 200


def test_a_subset_metric_is_compared_where_both_are_valid():
    both_valid = A["valid"] & B["valid"]
    difference = paired_difference(MeanAbsoluteError(), A, B)
    assert difference.n == both_valid.sum() < min(A["valid"].sum(), B["valid"].sum())
    expected = (A["error"] - B["error"])[both_valid].mean()
    assert difference.difference == pytest.approx(expected)


def test_a_frame_does_not_differ_from_itself():
    assert paired_difference(RSquared(), FRAME, FRAME) == Difference(
        0.0, 0.0, 0.0, VALID, 1.0
    )
    share = paired_difference(ExactMatch(), FRAME, FRAME)
    assert (share.low, share.high) == in_percent(tango(0, 0, 400))
    assert share.p == 1.0


def test_the_p_of_a_share_is_mcnemars():
    better = scored(seed=1, accuracy=0.5)
    share = paired_difference(ExactMatch(), better, B)
    assert share.b == (better["exact"] & ~B["exact"]).sum()
    assert share.p == pytest.approx(binomtest(share.b, share.b + share.c).pvalue)


@pytest.mark.parametrize("seed", range(12))
def test_the_p_of_another_metric_fits_its_interval(seed):
    error = paired_difference(MeanAbsoluteError(), scored(seed=seed), B)
    has_zero = error.low <= 0 <= error.high
    # Near 0.05 they may part: p counts resamples, the bounds are interpolated between two.
    assert (error.p < 0.05) != has_zero or 0.03 < error.p < 0.07
    assert error.b is None
    assert error.c is None


def test_the_p_of_resamples_is_never_zero_and_none_without_a_value():
    assert p_of_resamples(np.ones(1999)) == pytest.approx(2 / 2000)
    assert p_of_resamples(np.zeros(10)) == 1.0
    assert p_of_resamples(np.array([-1.0, 1.0, 1.0, 1.0])) == pytest.approx(0.8)
    assert p_of_resamples(np.full(5, np.nan)) is None


def test_over_seeds_gives_the_sample_deviation():
    values = [1.0, 2.0, 4.0]
    mean, deviation = over_seeds(values)
    assert (mean, deviation) == pytest.approx((np.mean(values), np.std(values, ddof=1)))
    assert over_seeds([3.0]) == (3.0, None)


def test_tango_gives_the_published_interval_of_airway_responsiveness():
    """Of 21 children 1 and 7 differ: Fagerland, Lydersen, Laake, "Recommended tests and
    confidence intervals for paired binomial proportions", Statistics in Medicine 33, 2014."""
    assert tango(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)


def _likeliest(b, c, n, delta):
    """The likeliest cells (first only, other only) with that difference, by a search of a grid."""
    other = np.linspace(max(0, -delta), (1 - delta) / 2, 200_001)[1:-1]
    first = other + delta
    with np.errstate(divide="ignore", invalid="ignore"):
        of_pairs = b * np.log(first) + c * np.log(other)
        of_ties = (n - b - c) * np.log1p(-first - other)
    at = np.nanargmax(of_pairs + of_ties)
    return np.array([first[at], other[at]])


@pytest.mark.parametrize(("b", "c", "n"), [(5, 3, 80), (12, 1, 40), (30, 55, 2000)])
def test_the_bounds_of_tango_are_where_the_score_test_rejects(b, c, n):
    for delta in tango(b, c, n):
        first, other = _likeliest(b, c, n, delta)
        error = np.sqrt(n * (first + other - delta**2))
        assert abs((b - c - n * delta) / error) == pytest.approx(1.96, abs=2e-3)


CASES = st.integers(1, 300).flatmap(
    lambda n: st.tuples(st.integers(0, n), st.integers(0, n), st.just(n))
)


@given(CASES)
def test_tango_holds_the_difference_has_a_width_and_turns_with_the_sides(case):
    b, c, n = case
    assume(b + c <= n)
    low, high = tango(b, c, n)
    assert -1 <= low <= (b - c) / n <= high <= 1
    assert high - low > 1e-3
    assert tango(c, b, n) == pytest.approx((-high, -low), abs=1e-9)
