import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from smmd_bench.contracts import ExactMatch, MeanAbsoluteError, ParseFailureRate, RSquared
from smmd_bench.scoring.proportions import tango
from smmd_bench.scoring.statistics import (
    Difference,
    Estimate,
    interval,
    over_seeds,
    p_of_resamples,
    paired_difference,
)


def scored(n: int = 400, seed: int = 0, accuracy: float = 0.4) -> pd.DataFrame:
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


def test_the_interval_of_a_share_is_wilsons():
    frame = scored(1000)
    low, high = proportion_confint(frame["exact"].sum(), 1000, method="wilson")
    found = interval(ExactMatch(), frame)
    assert found.value == pytest.approx(100 * frame["exact"].mean())
    assert (found.low, found.high) == pytest.approx((100 * low, 100 * high))
    assert found.n == 1000


def test_a_rate_of_failures_has_the_interval_of_what_it_counts():
    frame = scored(200)
    low, high = proportion_confint((~frame["valid"]).sum(), 200, method="wilson")
    found = interval(ParseFailureRate(), frame)
    assert (found.low, found.high) == pytest.approx((100 * low, 100 * high))
    other = scored(200, 5)
    found = paired_difference(ParseFailureRate(), frame, other)
    b, c = (~frame["valid"] & other["valid"]).sum(), (frame["valid"] & ~other["valid"]).sum()
    assert found.difference == pytest.approx(100 * (b - c) / 200)
    assert (found.low, found.high) == pytest.approx([100 * x for x in tango(b, c, 200)])


def test_metrics_of_a_subset_count_only_its_examples():
    frame = scored()
    found = interval(MeanAbsoluteError(), frame)
    assert found.n == frame["valid"].sum() < 400
    assert found.value == pytest.approx(frame["error"].mean())


FRAME = scored()
VALID = int(FRAME["valid"].sum())


@pytest.mark.parametrize(
    ("metric", "frame", "expected"),
    [
        (ExactMatch(), scored(0, accuracy=1.0), Estimate(None, None, None, 0)),
        (RSquared(), scored(1, accuracy=1.0), Estimate(None, None, None, 1)),
        (MeanAbsoluteError(), FRAME.assign(valid=False), Estimate(None, None, None, 0)),
        (RSquared(), FRAME.assign(answer=3.0), Estimate(None, None, None, FRAME["valid"].sum())),
    ],
    ids=["no example", "one example", "none is valid", "a constant truth"],
)
def test_what_cannot_be_estimated_is_none_and_warns_of_nothing(metric, frame, expected):
    assert interval(metric, frame) == expected


def test_the_paired_difference_is_the_difference_of_the_values():
    a, b = scored(seed=1, accuracy=0.6), scored(seed=2)
    found = paired_difference(ExactMatch(), a, b)
    assert found.difference == pytest.approx(100 * (a["exact"].mean() - b["exact"].mean()))
    assert found.low < found.difference < found.high


def test_shared_examples_are_paired_by_uid_and_not_by_place():
    a, b = scored(seed=1), scored(seed=2)
    shuffled = b.sample(frac=1, random_state=0)
    assert paired_difference(RSquared(), a, shuffled) == paired_difference(RSquared(), a, b)
    assert paired_difference(ExactMatch(), a[:300], b[100:]).n == 200


def test_a_subset_metric_is_compared_where_both_are_valid():
    a, b = scored(seed=1), scored(seed=2)
    both = a["valid"] & b["valid"]
    found = paired_difference(MeanAbsoluteError(), a, b)
    assert found.n == both.sum() < min(a["valid"].sum(), b["valid"].sum())
    assert found.difference == pytest.approx(a["error"][both].mean() - b["error"][both].mean())


def test_a_frame_does_not_differ_from_itself():
    frame = scored()
    assert paired_difference(RSquared(), frame, frame) == Difference(0.0, 0.0, 0.0, VALID, 1.0)
    found = paired_difference(ExactMatch(), frame, frame)
    assert (found.low, found.high) == pytest.approx([100 * x for x in tango(0, 0, 400)])
    assert found.p == 1.0


def test_the_p_of_a_share_is_mcnemars_and_of_another_metric_fits_its_interval():
    a, b = scored(seed=1, accuracy=0.5), scored(seed=2)
    share = paired_difference(ExactMatch(), a, b)
    assert share.b == (a["exact"] & ~b["exact"]).sum()
    assert share.p == pytest.approx(binomtest(share.b, share.b + share.c).pvalue)
    for seed in range(12):
        error = paired_difference(MeanAbsoluteError(), scored(seed=seed), b)
        assert (error.p < 0.05) == (not error.low <= 0 <= error.high) or 0.03 < error.p < 0.07
        assert (error.b, error.c) == (None, None)


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


def _likeliest(b: int, c: int, n: int, delta: float) -> np.ndarray:
    """The likeliest cells (first only, other only) with that difference, by a search of a grid."""
    other = np.linspace(max(0, -delta), (1 - delta) / 2, 200_001)[1:-1]
    first = other + delta
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = b * np.log(first) + c * np.log(other) + (n - b - c) * np.log1p(-first - other)
    at = np.nanargmax(likelihood)
    return np.array([first[at], other[at]])


@pytest.mark.parametrize(("b", "c", "n"), [(5, 3, 80), (12, 1, 40), (30, 55, 2000)])
def test_the_bounds_of_tango_are_where_the_score_test_rejects(b, c, n):
    for delta in tango(b, c, n):
        first, other = _likeliest(b, c, n, delta)
        error = np.sqrt(n * (first + other - delta**2))
        assert abs((b - c - n * delta) / error) == pytest.approx(1.96, abs=2e-3)


@given(st.integers(1, 300).flatmap(
    lambda n: st.tuples(st.integers(0, n), st.integers(0, n), st.just(n))
))  # fmt: skip
def test_tango_holds_the_difference_has_a_width_and_turns_with_the_sides(case):
    b, c, n = case
    if b + c > n:
        return
    low, high = tango(b, c, n)
    assert -1 <= low <= (b - c) / n <= high <= 1
    assert high - low > 1e-3
    assert tango(c, b, n) == pytest.approx((-high, -low), abs=1e-9)
