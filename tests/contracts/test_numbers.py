"""Numbers read from text, exactly."""

import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.contracts import first_number, last_number, parse_number

NUMBERS = {
    "-3/2": Fraction(-3, 2), "1,234": 1234, "1,234,567.5": Fraction(2469135, 2), "$18.00": 18,
    "-$18": -18, "$-18": -18, "18.": 18, ".5": Fraction(1, 2), "1.8e1": 18,
    "1E-3": Fraction(1, 1000), "\u22125": -5, "+7": 7, "25%": 25, "25 %": 25, r"25\%": 25,
    "007": 7, "3/-4": Fraction(-3, 4), r"\frac{3}{4}": Fraction(3, 4),
    r"-\dfrac{3}{4}": Fraction(-3, 4), "  42\n": 42,
}  # fmt: skip
NO_NUMBERS = [
    *("", "-", "five", "5 apples", "1,23", "12,34,567", "0,123", "1_000", "1 1/2", "3/0"),
    *("--5", "-$-5", "1/2/3", "1.2.3", "inf", "nan", "٣", "１", "٣/4", "0x10"),
    *("1e999999999", "1e-401", "9" * 401, "9" * 5000, "1e" + "9" * 5000),
]
RUNNING = {  # text: its first number, and its last
    "He pays $1,234.50 for 3 goats.": (Decimal("1234.50"), 3),
    "It takes 3/4 of an hour": (Fraction(3, 4), Fraction(3, 4)),
    "so 3 / 4": (Fraction(3, 4), Fraction(3, 4)),
    "12 / 4 = 3": (3, 3),
    r"\boxed{\frac{3}{4}}": (Fraction(3, 4), Fraction(3, 4)),
    "#### -1,234": (-1234, -1234),
    "the answer is 18.": (18, 18),
    "5%, not 3%": (5, 3),
    "1,23": (1, 23),
    "12,345,67": (12, 67),
    "1, 2, 3": (1, 3),
    "[1,200]": (1200, 1200),
    "x-5": (5, 5),
    "3-5": (3, 5),
    "(2)-5": (2, 5),
    "5%-3%": (5, 3),
    "x = -5": (-5, -5),
    "x=-5": (-5, -5),
    "5 - 3": (5, 3),
    "5 -3": (5, -3),
    "答案是-5": (-5, -5),
    "10km in 2h": (10, 2),
    "x5 = 7": (7, 7),
    "at 1:05": (1, 5),
    "**42**": (42, 42),
    "20/0 is 7": (7, 7),
    "1e999999999 or 7": (7, 7),
}
WITHOUT = [
    *("", "none at all", "x/4", "per km/5", r"\frac{x}{4}", "x5", "GPT4.1", "3.11.2"),
    *("24/12/2024", "5/0", "٣ or １"),
]


@pytest.mark.parametrize("text", [*NUMBERS, *NO_NUMBERS])
def test_a_text_that_is_a_number_or_none(text):
    assert parse_number(text) == NUMBERS.get(text)


@pytest.mark.parametrize("text", [*RUNNING, *WITHOUT])
def test_numbers_in_running_text(text):
    assert (first_number(text), last_number(text)) == RUNNING.get(text, (None, None))


@given(st.integers(-(10**30), 10**30))
def test_integers_round_trip(number):
    assert parse_number(str(number)) == parse_number(f"{number:,}") == number


@given(st.fractions())
def test_fractions_round_trip(number):
    assert parse_number(f"{number.numerator}/{number.denominator}") == number


@given(st.decimals(-(10**30), 10**30))
def test_decimals_round_trip(number):
    if abs(number.adjusted()) < 300:
        assert parse_number(f"{number:f}") == parse_number(f"{number:e}") == Fraction(number)


@given(st.text() | st.text(alphabet="0123456789.,/-+eE$% \u2212\\frac{}x٣"))
def test_reading_never_raises(text):
    first_number(text)
    assert parse_number(text) is None or last_number(text) is not None


@given(st.lists(st.fractions(), min_size=1))
def test_what_stands_between_words_is_found(numbers):
    text = " and ".join(f"{n.numerator}/{n.denominator}" for n in numbers)
    assert (first_number(text), last_number(text)) == (numbers[0], numbers[-1])


@pytest.mark.parametrize(
    "part", ["1", "1,111", "1,", ",111", "1.", "1/", "1 /", "a_", "a", "-", "$", "1e", r"\frac{1"]
)
def test_reading_takes_linear_time(part):
    def seconds(length):
        start = time.process_time()
        last_number(part * (length // len(part)))
        return time.process_time() - start

    assert min(seconds(80_000) for _ in range(3)) < 1  # quadratic: minutes
