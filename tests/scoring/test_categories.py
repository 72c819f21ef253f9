from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.scoring.categories import CATEGORIES, POWERS, category

numbers = st.fractions(-(10**6), 10**6, max_denominator=1000)


CASES = {  # parsed and answer, in the paper's order
    "exact": [("1/3", "1/3"), ("0", "0")],
    "sign_flip": [("-95", "100"), ("-1", "1")],  # before scale and near
    # the sizes are compared, as printed
    "scale_x10^1": [("950", "100"), ("-1000", "100")],
    "scale_x10^-1": [("9.5", "100"), ("0.1", "1")],  # before near
    "near_miss": [("3", "2"), ("990", "1000"), ("-1", "0")],  # before catastrophic
    "catastrophic": [("50", "100"), ("1000000", "100"), ("1.01", "0")],
    "other": [("989.9", "1000"), ("9.01", "8")],
}


@pytest.mark.parametrize("expected", CASES)
def test_categories_in_the_papers_order(expected):
    for parsed, answer in CASES[expected]:
        assert category(Fraction(parsed), Fraction(answer)) == expected, (
            parsed,
            answer,
        )
    assert category(None, Fraction(3)) == "invalid"


PREDICATES = {
    "exact": lambda p, y: p == y,
    "sign_flip": lambda p, y: y != 0 and abs(p + y) <= abs(y) / 20,
    **{
        f"scale_x10^{k}": lambda p, y, by=Fraction(10) ** k: (
            y != 0 and abs(abs(p) / (abs(y) * by) - 1) <= Fraction(1, 20)
        )
        for k in POWERS
    },
    "near_miss": lambda p, y: abs(p - y) <= 1 or abs(p - y) <= abs(y) / 100,
    "catastrophic": lambda p, y: abs(p - y) >= abs(y) / 2,
    "other": lambda p, y: True,
}
"""The paper's definitions, each by itself: several can hold of one answer."""


ratios = st.one_of(
    st.fractions(-2, 2, max_denominator=200),
    st.sampled_from(POWERS).flatmap(
        lambda k: st.fractions(
            Fraction(9, 10), Fraction(11, 10), max_denominator=200
        ).map(lambda r: r * Fraction(10) ** k)
    ),
)
"""Of answers near the boundaries."""
pairs = st.one_of(
    st.tuples(numbers, numbers),
    st.tuples(ratios, numbers).map(lambda p: (p[0] * p[1], p[1])),
)


@given(pairs)
def test_the_category_is_the_first_definition_that_holds(pair):
    assert [*PREDICATES, "invalid"] == list(CATEGORIES)
    assert category(*pair) == next(
        name for name, holds in PREDICATES.items() if holds(*pair)
    )
