"""Numbers of a file: decimal commas, thousands, percent, currency and units, read or refused."""

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from smmd_bench.tasks._table_numbers import spelling_of

import smmd_bench as sb
from tests.conftest import expect_user_error


def table(tmp_path, answers, more=""):
    """A task of these answers, in a file whose columns are parted by bars."""
    rows = [f"Q {at}?|{answer}" for at, answer in enumerate(answers)]
    file = tmp_path / "a.csv"
    file.write_text("\n".join(["question|answer", *rows]), encoding="utf-8")
    return sb.load_task(f'table[path="{file}"{more}]')


def values(task):
    """The answers in the order of the file."""
    examples = [e for split in task.paper_sizes for e in task._content.examples[split]]
    for example in examples:
        assert task.parse(f" {example.target}\nQ") == example.answer
    examples.sort(key=lambda example: example.attributes["row"])
    return [example.answer and example.answer.value for example in examples]


READ = [
    (["5,860", "12,58"], ',decimal=","', ["5.86", "12.58"]),
    (["1.234,5", "1.234"], ',decimal=","', ["1234.5", "1234"]),
    (["5,860", "1,200"], ',decimal="."', ["5860", "1200"]),
    (["1 234,5", "0,5"], ',decimal=",",thousands=" "', ["1234.5", "0.5"]),
    (["1\u202f234,5", "0,5"], ',decimal=",",thousands=" "', ["1234.5", "0.5"]),
    (["1'234.5", "0.5"], ",thousands='", ["1234.5", "0.5"]),
    (["1.234", "7"], ",thousands=.", ["1234", "7"]),
    (["5,860", "1,200.5"], "", ["5860", "1200.5"]),
    (["5,860", "12.58"], "", ["5860", "12.58"]),
    (["5,860", "1,200,300"], "", ["5860", "1200300"]),
    (["5%", "12 %"], "", ["5", "12"]),
    (["$18", "$1.5"], "", ["18", "1.5"]),
    (["1,5 %", "2 %"], ',decimal=","', ["1.5", "2"]),
]


@pytest.mark.parametrize(("answers", "more", "read"), READ)
def test_a_number_is_read_by_what_the_file_or_the_spec_says(
    answers, more, read, tmp_path
):
    assert values(table(tmp_path, answers, more)) == [*map(Fraction, read)]


REFUSED = [
    (
        ["5,860", "1,200"],
        "",
        "row 1: its answer is '5,860', which is 5860 or 5.860, and no other",
    ),
    (["7", "1,200"], "", "row 2: its answer is '1,200', which is 1200 or 1.200"),
    (
        ["12,58"] * 3,
        "",
        "row 1: its answer is '12,58', with a decimal comma: say so with table[dec",
    ),
    (["5,860", "12,58"], "", "row 2: its answer is '12,58', with a decimal comma"),
    (["5.860", "1.234,5"], "", "row 2: its answer is '1.234,5', with a decimal comma"),
    (["3", "0,123"], "", "row 2: its answer is '0,123', with a decimal comma"),
    (["1'234", "5'678"], "", "which is no number as it stands, as in 2 of 2 rows"),
    (
        ["12 km", "3 km"],
        "",
        "as in 2 of 2 rows ('… km'): leave the number alone in the column",
    ),
    (["12 km", "3 m", "4 km", "5 m"], "", "as in 4 of 4 rows ('… km', '… m')"),
    (["5 €", "7 €", "yes"], "", "as in 2 of 3 rows ('… €')"),
    (["5 percent", "7 percent"], "", "('… percent')"),
    (["USD 5", "USD 7"], "", "('USD …')"),
    (["1,5 kg", "2,5 kg"], "", "('… kg')"),
    (
        ["5%", "0.05"],
        "",
        "row 1: its answer is '5%', and that of row 2 '0.05': write the same sign",
    ),
    (["$5", "€5"], "", "row 1: its answer is '$5', and that of row 2 '€5'"),
    (
        ["1", "2", "3.5", "2,5"],
        ',decimal=","',
        "row 3: its answer is '3.5', which is no number as",
    ),
    (
        ["1", "2", "3 apples"],
        "",
        "row 3: its answer is '3 apples', and most others are numbers",
    ),
    # its whole text
    (["1", "2", "5</s>"], "", "row 3: its answer is '5</s>', and most others"),
    (
        ["1", "2"],
        ',decimal=",",thousands=","',
        "',' cannot be the decimal sign and part thousands",
    ),
]


@pytest.mark.parametrize(("answers", "more", "message"), REFUSED)
def test_what_could_be_read_in_two_ways_is_refused(answers, more, message, tmp_path):
    with expect_user_error(re.escape(message)):
        values(table(tmp_path, answers, more))


@pytest.mark.parametrize(
    "answers",
    [
        ["yes", "no", "12 km"],
        ["GPT-4", "GPT-3"],
        ["12:30", "12:45"],
        ["1, 2", "2, 3"],
        ["x5", "x6"],
    ],
)
def test_texts_with_numbers_in_them_are_texts(answers, tmp_path):
    task = table(tmp_path, answers)
    assert values(task) == [None] * len(answers)
    assert task.metrics()[0].name == task.select_by == "text_match"


def test_texts_are_texts_where_the_spec_says_so(tmp_path):
    assert values(table(tmp_path, ["12,58", "5,860"], ",answers=text")) == [None, None]


SIGNS = [
    (None, None),
    (",", None),
    (None, "."),
    (".", " "),
    (",", " "),
    (".", "'"),
    (",", "'"),
]


@given(st.decimals(-(10**9), 10**9, places=3), st.sampled_from(SIGNS))
def test_a_number_is_read_as_it_is_written(number, signs):
    spelling = spelling_of(*signs)
    text = f"{number:,}".translate(
        {ord(","): spelling.thousands, ord("."): spelling.decimal}
    )
    assert (
        spelling.read(text)
        == spelling.read_completion(f" {text}</s>")
        == Fraction(number)
    )


def test_decimals_are_selected_by_their_error(tmp_path):
    assert table(tmp_path, ["1.5", "2"]).select_by == "mean_absolute_error"
    assert table(tmp_path, ["1/2", "2"]).select_by == "exact_match"
    assert table(tmp_path, ["5", "2"]).select_by == "exact_match"
    plain = table(tmp_path, ["5", "2"])
    chosen = table(tmp_path, ["5", "2"], ",select=r_squared")
    assert chosen.select_by == "r_squared"
    assert chosen.identity("train", 0) == plain.identity("train", 0)

    with expect_user_error(r"table\[select=rouge\] is no metric of text: known: text_"):
        table(tmp_path, ["a", "b"], ",select=rouge").examples("train", 0)
