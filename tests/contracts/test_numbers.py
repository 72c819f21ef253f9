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
    r"-\dfrac{3}{4}": Fraction(-3, 4), "  42\n": 42, "9{,}500": 9500, r"9\,500": 9500,
    r"9,\!500{,}000": 9500000, "\u20135": -5, r"-\$5": -5, "-US$5": -5, "-$ 5": -5,
    "1 1/2": Fraction(3, 2), "10 000": 10000, "-1 234 567": -1234567,
    "10 000.5": Fraction(20001, 2), "1 234 1/2": Fraction(2469, 2), "5 100/200": Fraction(11, 2),
    "\u200e8/15\u00ad": Fraction(8, 15), "\u202d-12\u202c": -12,
    "-2\u00bd": Fraction(-5, 2), "2 \u2154": Fraction(8, 3),
    "1,000 1/2": Fraction(2001, 2), r"5\frac{1}{2}": Fraction(11, 2), "5\u20448": Fraction(5, 8),
    "1.5 \u00d7 10^3": 1500, r"1.5 \times 10^{3}": 1500, "1.5*10^3": 1500, "1.5x10^3": 1500,
    "1.5\u00d710\u207b\u00b3": Fraction(3, 2000), r"-2 \cdot 10^{2}": -200, "10**3": 1000,
}  # fmt: skip
NO_NUMBERS = [
    *(
        "",
        "-",
        "five",
        "5 apples",
        "1,23",
        "12,34,567",
        "0,123",
        "1_000",
        "1 3/2",
        "3/0",
    ),
    *("--5", "-$-5", "1/2/3", "1.2.3", "inf", "nan", "٣", "１", "٣/4", "0x10"),
    *(
        "1.234,56",
        "3:30",
        "9{,}50",
        "1'000",
        "5\u00b2",
        "2^10",
        "3-5",
        "5k",
        "5 1/2/3",
        "18 ####",
    ),
    *("1e999999999", "1e-401", "9" * 401, "9" * 5000, "1e" + "9" * 5000),
]
RUNNING = {  # text: its first number, and its last
    "He pays $1,234.50 for 3 goats.": (Decimal("1234.50"), 3),
    "It takes 3/4 of an hour": (Fraction(3, 4), Fraction(3, 4)),
    "so 3 / 4": (Fraction(3, 4), Fraction(3, 4)), "12 / 4 = 3": (3, 3),
    r"\boxed{\frac{3}{4}}": (Fraction(3, 4), Fraction(3, 4)), "#### -1,234": (-1234, -1234),
    "the answer is 18.": (18, 18), "5%, not 3%": (5, 3), "1, 2, 3": (1, 3),
    "[1,200]": (1200, 1200), "(2)-5": (2, None), "x = 2 or 3-5": (2, None), "3:30 or 4": (None, 4),
    "5+3=8": (None, 8), "12x4=48": (None, 48), "x = -5": (-5, -5), "x=-5": (-5, -5),
    "5 - 3": (5, 3), "5 -3": (5, -3), "= - 5 or (- 6)": (-5, -6),
    r"3 or \frac{37}2": (3, Fraction(37, 2)),
    r"3\frac12 or \frac 12": (Fraction(7, 2), Fraction(1, 2)), "5 ^ 2": (None, None),
    r"\boxed{18\text{ cm}^{2}}": (18, 18), "- 5 eggs": (5, 5), "x + 1 - 5": (1, 5),
    "答案是-5": (-5, -5), "10km in 2h": (10, 2), "x5 = 7": (7, 7), "12 345": (12345, 12345),
    "10 m\u00b2 = 10 m^2": (10, 10), "$12/hour, not $9/day": (12, 9), "GPT-4 says 7": (7, 7),
    "...7...": (7, 7), "1. 1/2 cup": (1, Fraction(1, 2)),
    "2\u00bd cups or -1 1/2": (Fraction(5, 2), Fraction(-3, 2)), r"\boxed{9{,}500}": (9500, 9500),
    r"-\boxed{5} or -**6**": (-5, -6), "#### \u20135": (-5, -5), "5\u4e2a\uff0c3\u4e2a": (5, 3),
    "_5_ and __6__": (5, 6), "**42**": (42, 42), "20/0 is 7": (None, 7),
    "7 or 1e999999999": (7, None),
}  # fmt: skip
WITHOUT = [
    "", "none at all", "x/4", "per km/5", r"\frac{x}{4}", "x5", "GPT4.1", "3.11.2", "24/12/2024",
    "5/0", "٣ or １", "1,23", "12,345,67", "1,2,3", "1.234,56", "1.234.567", "at 1:05", "3:30:15",
    "x-5", "3-5", "3\u20135", "5%-3%", "$3-$5", "2024-01-05", "--5", "-(5)", "1'000", "1\u2019000",
    "1_000", "5٣", "٣5", "5^2", "5^n", "5\u00b2", "x^{2}", "2^10", "0x10", "2x3", "3*4",
    r"5\times3", r"5\sqrt{3}", r"\sqrt{2}", r"\frac{4}{x}", r"\sqrt[3]{8}", "2π", r"2\pi", "3~5",
    "3：30", r"3\frac x2", "5k", "1.2M", "5'11", "\u00b15", "9{,}50", "4 9/2", "GPT-4", "1e5e5",
    "10 00", "1 234 56", "1000 000", "10 000,5", "1 00",
    "1/2/3",
]  # fmt: skip


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
        assert (
            parse_number(f"{number:f}")
            == parse_number(f"{number:e}")
            == Fraction(number)
        )


@given(
    st.text() | st.text(alphabet="0123456789.,/-+^*eE$% \u2212\u00bd\u00b2\\frac{}x٣")
)
def test_reading_never_raises(text):
    value = parse_number(text)
    assert value is None or value == first_number(text) == last_number(text)


@given(st.lists(st.fractions(), min_size=1))
def test_what_stands_between_words_is_found(numbers):
    text = " and ".join(f"{n.numerator}/{n.denominator}" for n in numbers)
    assert first_number(text) == numbers[0]
    assert last_number(text) == numbers[-1]


PARTS = ("1", "1,111", "1,", ",111", "1.", "1/", "1 /", "a_", "a", "-", "$", "1e", r"\frac{1", "1 ",
         "1 1/", "1a", "1:", "A", "10^", "1x", "{", "½", "²", r"1\frac{", "--1", "5\\")  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_reading_takes_linear_time(part):
    def seconds(length):
        start = time.process_time()
        last_number(part * (length // len(part)))
        parse_number(part * (length // len(part)))
        return time.process_time() - start

    assert min(seconds(80_000) for _ in range(3)) < 1  # quadratic: minutes
