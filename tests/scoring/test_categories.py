from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.scoring.categories import CATEGORIES, category

numbers = st.fractions(-(10**6), 10**6, max_denominator=1000)


@pytest.mark.parametrize(
    ("parsed", "answer", "expected"),
    [
        ("100", "100", "exact"),
        ("-100", "100", "sign_flip"),
        ("-95", "100", "sign_flip"),  # within 5 %, the boundary counts
        ("-105", "100", "sign_flip"),
        ("-94.99", "100", "catastrophic"),
        ("100", "-100", "sign_flip"),
        ("1000", "100", "scale_x10^1"),
        ("950", "100", "scale_x10^1"),
        ("1050", "100", "scale_x10^1"),
        ("949.99", "100", "catastrophic"),
        ("-1000", "100", "scale_x10^1"),  # the sizes are compared, as printed
        ("10", "100", "scale_x10^-1"),
        ("10000", "100", "scale_x10^2"),
        ("1", "100", "scale_x10^-2"),
        ("100000", "100", "scale_x10^3"),
        ("0.1", "100", "scale_x10^-3"),
        ("1000000", "100", "catastrophic"),  # k = 4 is not among the scales
        ("101", "100", "near_miss"),
        ("99", "100", "near_miss"),
        ("1010", "1000", "near_miss"),  # relative error of 1 %
        ("1010.1", "1000", "other"),
        ("150", "100", "catastrophic"),  # relative error of 50 %
        ("149.99", "100", "other"),
        ("50", "100", "catastrophic"),
        ("3", "2", "near_miss"),  # near before catastrophic
        ("-1", "1", "sign_flip"),  # sign before scale and near
        ("0.1", "1", "scale_x10^-1"),  # scale before near
        ("1/3", "1/3", "exact"),
        ("0.3333333333333333", "1/3", "near_miss"),
    ],
)
def test_categories_in_the_papers_order(parsed, answer, expected):
    assert category(Fraction(parsed), Fraction(answer)) == expected


@pytest.mark.parametrize(
    ("parsed", "expected"),
    [("0", "exact"), ("1", "near_miss"), ("-1", "near_miss"), ("1.01", "catastrophic")],
)
def test_a_truth_of_zero_has_no_sign_and_no_scale(parsed, expected):
    assert category(Fraction(parsed), Fraction(0)) == expected


def test_what_does_not_parse_is_invalid():
    assert category(None, Fraction(3)) == "invalid"


@given(numbers, numbers)
def test_every_answer_has_one_known_category(parsed, answer):
    found = category(parsed, answer)
    assert found in CATEGORIES
    assert (found == "exact") == (parsed == answer)


@given(numbers, numbers)
def test_turning_both_signs_changes_nothing(parsed, answer):
    assert category(-parsed, -answer) == category(parsed, answer)
