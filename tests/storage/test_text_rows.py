"""Typed columns as texts."""

import json
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.contracts import parse_number, read_texts
from smmd_bench.storage.text_rows import spell_value
from tests.conftest import expect_user_error

COLUMNS = [
    (pa.array([5.2, 4.0, None], pa.float32()), ["5.2", "4", ""]),
    (pa.array([0.1, 2.5e-05, 1e16]), ["0.1", "0.000025", "10000000000000000"]),
    (pa.array([2**60 + 1, None, -3]), [str(2**60 + 1), "", "-3"]),
    (
        pa.array([Decimal("12.50"), Decimal(3), None], pa.decimal128(9, 2)),
        ["12.50", "3.00", ""],
    ),
    (pa.array([date(2026, 1, 2)] * 3), ["2026-01-02"] * 3),
    (pa.array([" a ", "b", "b"]).dictionary_encode(), ["a", "b", "b"]),
]


@pytest.mark.parametrize(
    ("column", "texts"), COLUMNS, ids=lambda value: str(value)[:20]
)
def test_a_column_of_parquet_keeps_its_type(column, texts, tmp_path):
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"answer": column}), file)
    assert [row["answer"] for row in read_texts(file, ["answer"])] == texts


def test_numbers_of_json_have_no_exponent_and_all_their_digits(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(
        '[{"a": 1e+16}, {"a": 2.5e-05}, {"a": 12345678901234567891}, {"a": 18.0}]'
    )
    texts = [row["a"] for row in read_texts(file, ["a"])]
    assert texts == ["10000000000000000", "0.000025", "12345678901234567891", "18"]


@given(st.floats(allow_nan=False, allow_infinity=False, width=64))
def test_the_text_of_a_float_is_the_float(value):
    text = spell_value(value)
    assert float(text) == value
    assert "e" not in text
    if len(text) < 300:
        assert parse_number(text) == Fraction(text)


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_the_text_of_a_float_of_32_bits_is_that_float(value):
    assert np.float32(spell_value(np.float32(value))) == np.float32(value)


def test_a_column_that_the_first_row_lacks_is_a_column_and_blanks_are_no_part_of_a_name(
    tmp_path,
):
    file = tmp_path / "a.jsonl"
    file.write_text('{"q ": 1}\n{"q ": 2, "unit": "m"}\n')
    assert read_texts(file, ["q", "unit"]) == [
        {"q": "1", "unit": ""},
        {"q": "2", "unit": "m"},
    ]
    with expect_user_error(r"a\.jsonl has no column 'unity': did you mean unit\?"):
        read_texts(file, ["unity"])


@pytest.mark.parametrize(
    ("value", "said"),
    [([1], "is a list"), ({"a": 1}, "is a dict")],
)
def test_what_is_no_text_is_refused_with_its_row(value, said, tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text(f'{{"a": 1}}\n{json.dumps({"a": value})}\n')
    with expect_user_error(rf"a\.jsonl, row 2: its a {said}"):
        read_texts(file, ["a"])
