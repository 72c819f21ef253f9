import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.scoring.proportions import tango


def test_tango_gives_the_published_interval_of_airway_responsiveness():
    """Of 21 children 1 and 7 differ: Fagerland, Lydersen, Laake, "Recommended tests and
    confidence intervals for paired binomial proportions", Statistics in Medicine 33, 2014."""
    assert tango(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)


def _likeliest(b: int, c: int, n: int, delta: float) -> np.ndarray:
    """The cells (first only, other only) of greatest likelihood with their difference given, by a
    search of a grid."""
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
