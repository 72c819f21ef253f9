import numpy as np
import pytest

from smmd_bench.contracts import ExactMatch, MeanAbsoluteError, RSquared
from smmd_bench.scoring.crossed import pseudo_values
from smmd_bench.scoring.statistics import paired_difference

from .test_statistics import scored


@pytest.mark.parametrize("n", [201, 400, 1999])
def test_groups_of_a_mean_hold_its_difference_whatever_their_sizes(n):
    a, b = scored(n, 1, 0.6), scored(n, 2)
    found = np.array(pseudo_values(ExactMatch(), a, b))
    assert 100 < len(found) <= 200
    exact = paired_difference(ExactMatch(), a, b)
    assert found.mean() == pytest.approx(exact.difference, abs=1.0)
    assert found.std(ddof=1) / np.sqrt(len(found)) == pytest.approx(
        (exact.high - exact.low) / 3.92, rel=0.15
    )


@pytest.mark.parametrize("metric", [MeanAbsoluteError(), RSquared()])
def test_the_error_is_that_of_the_bootstrap(metric):
    a, b = scored(1000, 1, 0.6), scored(1000, 2)
    found = np.array(pseudo_values(metric, a, b))
    bootstrap = paired_difference(metric, a, b)
    assert found.std(ddof=1) / np.sqrt(len(found)) == pytest.approx(
        (bootstrap.high - bootstrap.low) / 3.92, rel=0.15
    )


def test_the_groups_are_the_same_whatever_the_subset():
    a, b = scored(400, 1), scored(400, 2)
    every = np.array(pseudo_values(ExactMatch(), a, b))
    wrong = a.assign(error=a["error"] + 100 * (~a["exact"]), valid=True).fillna({"error": 100})
    other = b.assign(error=b["error"] + 100 * (~b["exact"]), valid=True).fillna({"error": 100})
    errors = np.array(pseudo_values(MeanAbsoluteError(), wrong, other))
    assert np.corrcoef(every, errors)[0, 1] < -0.95


def test_what_has_no_value_has_none():
    frame = scored(40)
    assert pseudo_values(RSquared(), frame.assign(answer=1.0), frame) is None
    assert pseudo_values(ExactMatch(), frame[:1], frame[:1]) is None
    assert pseudo_values(MeanAbsoluteError(), frame.assign(valid=False), frame) is None
