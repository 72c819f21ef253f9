"""The best constant answer, against all constants tried one by one."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.contracts import (
    ExactMatch,
    MeanAbsoluteError,
    ParseFailureRate,
    RSquared,
    TextMatch,
)
from smmd_bench.scoring.constant import answer_by_constant, constant_value

answers = st.lists(st.integers(-20, 20), min_size=1, max_size=30).map(
    lambda values: np.array(values, float)
)


@given(answers)
def test_no_constant_has_a_smaller_error_or_more_exact_matches(answers):
    constants = [*np.linspace(-20, 20, 81)]
    errors = [np.abs(answers - constant).mean() for constant in constants]
    shares = [100 * (answers == constant).mean() for constant in constants]
    assert constant_value(MeanAbsoluteError(), answers) == pytest.approx(min(errors))
    assert constant_value(ExactMatch(), answers) == pytest.approx(max(shares))


class RootMeanSquaredError(MeanAbsoluteError):
    name = "rmse"

    def statistic(self, *columns, axis=-1):
        return np.sqrt(np.mean(np.square(columns[0]), axis=axis))


class RelativeError(RSquared):
    def statistic(self, *columns, axis=-1):
        answer, parsed = columns
        return np.mean(np.abs(parsed - answer) / answer, axis=axis)


class Bias(RSquared):
    def statistic(self, *columns, axis=-1):
        answer, parsed = columns
        return np.mean(parsed - answer, axis=axis)


class ErrorRate(ExactMatch):
    def statistic(self, *columns, axis=-1):
        return 100 - super().statistic(*columns, axis=axis)


FOREIGN = [RootMeanSquaredError(), RelativeError(), Bias(), ErrorRate()]


@pytest.mark.parametrize("metric", FOREIGN)
def test_a_metric_of_someone_else_has_no_constant(metric):
    assert constant_value(metric, np.array([1.0, 1, 2, 12])) is None


def test_r_squared_is_zero_and_other_metrics_have_no_constant():
    answers = np.array([1.0, 2.0, 4.0])
    mean = np.full(3, answers.mean())
    assert constant_value(RSquared(), answers) == pytest.approx(
        RSquared().statistic(answers, mean)
    )
    assert constant_value(ParseFailureRate(), answers) is None
    assert constant_value(TextMatch(), answers) is None


def test_where_an_answer_is_no_number_there_is_no_constant():
    assert constant_value(ExactMatch(), np.array([1.0, np.nan])) is None
    assert constant_value(ExactMatch(), np.array([])) is None


def test_the_median_answers_what_cannot_be_read_and_nothing_else_changes():
    scores = pd.DataFrame(
        {
            "answer": [1.0, 2.0, 9.0],
            "parsed": [1.5, np.nan, 8.0],
            "error": [0.5, np.nan, 1.0],
            "valid": [True, False, True],
            "exact": [False, False, False],
        }
    )
    filled = answer_by_constant(scores)
    assert filled["parsed"].tolist() == [1.5, 2.0, 8.0]
    assert filled["error"].tolist() == [0.5, 0.0, 1.0]
    assert filled["valid"].all()
    assert scores["valid"].tolist() == [True, False, True]
