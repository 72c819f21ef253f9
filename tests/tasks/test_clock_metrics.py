import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error
from smmd_bench.tasks._clock_metrics import TimeGap, TimeGapWrapped

from smmd_bench.scoring.statistics import interval

minutes = st.integers(60, 12 * 60 + 59)
times = st.lists(st.tuples(minutes, minutes), min_size=1, max_size=40)


def steps_round_the_dial(a, b):
    """Minutes from one time to the other, stepped one by one, the shorter way."""
    steps = 0
    while (a + steps) % 720 != b % 720 and (a - steps) % 720 != b % 720:
        steps += 1
    return steps


@given(times)
def test_the_time_gap_is_scikit_learns_mean_absolute_error(pairs):
    answer, parsed = (np.array(column, float) for column in zip(*pairs, strict=True))
    found = TimeGap().statistic(np.abs(answer - parsed))
    assert found == pytest.approx(mean_absolute_error(answer, parsed))


@given(times)
def test_the_wrapped_gap_is_the_mean_of_the_shorter_ways_round(pairs):
    errors = np.array([abs(a - b) for a, b in pairs], float)
    expected = mean_absolute_error(np.zeros(len(pairs)), [steps_round_the_dial(*p) for p in pairs])
    assert TimeGapWrapped().statistic(errors) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "parsed", "plain", "wrapped"),
    [
        (12 * 60 + 50, 60, 710, 10),
        (60, 7 * 60, 360, 360),
        (65, 65, 0, 0),
        (12 * 60, 60 + 5, 655, 65),
    ],
)
def test_a_gap_and_the_same_round_the_dial(answer, parsed, plain, wrapped):
    error = np.array([abs(answer - parsed)], float)
    assert (TimeGap().statistic(error), TimeGapWrapped().statistic(error)) == (plain, wrapped)


@pytest.mark.parametrize("metric", [TimeGap(), TimeGapWrapped()], ids=lambda m: m.name)
def test_a_batch_of_resamples_gives_what_each_gives_alone_and_no_time_is_left_out(metric):
    errors = np.random.default_rng(0).integers(0, 720, (4, 50)).astype(float)
    alone = [float(metric.statistic(row)) for row in errors]
    for axis in (0, -1):
        together = metric.statistic(np.moveaxis(errors, -1, axis), axis=axis)
        assert together == pytest.approx(alone)
    scores = pd.DataFrame({"error": [30.0, np.nan, 90.0], "valid": [True, False, True]})
    found = interval(metric, scores, resamples=20)
    assert (found.value, found.n) == (60.0, 2)
