"""CSV from elsewhere: what parts its columns, its encoding, and quotes out of place."""

import pytest

from smmd_bench.storage.text_rows import read_rows
from tests.conftest import expect_user_error

ROWS = [{"question": f"Q {at}?", "answer": str(at)} for at in range(6)]


def text_of(separator=","):
    lines = [ROWS[0], *map(dict.values, ROWS)]
    return "\n".join(map(separator.join, lines)) + "\n"


@pytest.fixture
def read(tmp_path):
    """`read(text, **options)`: the rows of a file with this text."""

    def read(text, **options):
        file = tmp_path / "a.csv"
        file.write_text(text, encoding="utf-8", newline="")
        return read_rows(file, **options)

    return read


@pytest.mark.parametrize(
    ("name", "separator", "encoding"),
    [
        ("a.csv", ",", "utf-8"),
        ("a.csv", ";", "utf-8"),
        ("a.csv", "\t", "utf-8-sig"),
        ("a.csv", "|", "utf-16"),
        ("A.CSV", ",", "utf-8"),
        ("a.TSV", "\t", "utf-8"),
        ("a.tsv", ",", "utf-8"),
    ],
)
def test_the_header_says_what_parts_columns_and_a_mark_the_encoding(
    name, separator, encoding, tmp_path
):
    (tmp_path / name).write_text(text_of(separator), encoding=encoding)
    assert read_rows(tmp_path / name, strict=True) == ROWS


def test_a_header_with_two_other_signs_needs_the_separator(read):
    text = text_of(";").replace("answer", "answer|unit")
    assert len(read(text, strict=True)[0]) == 1
    assert [*read(text, separator=";")[0]] == ["question", "answer|unit"]


def test_another_encoding_is_named_or_refused_with_the_line(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(text_of().replace("Q 3", "Qé 3").encode("cp1252"))
    with expect_user_error(r"a\.csv is not .*\(line 5 is not UTF-8: .*encoding=cp1252"):
        read_rows(file)

    assert read_rows(file, encoding="cp1252")[3]["question"] == "Qé 3?"
    with expect_user_error("klingon is no encoding"):
        read_rows(file, encoding="klingon")


WRONG = [
    (
        '"open,1\nb,2\n"c" d,3\n',
        "line 2: text follows a closing quote, or a quote is not closed",
    ),
    (
        'a,1\n"open,2\n',
        "line 3: text follows a closing quote, or a quote is not closed",
    ),
    ('a,1\n"said \\"no\\".",2\n', "line 3: text follows a closing quote"),
    ('a,1\n"5\\"",2\n"6\\"",3\n', "line 3: text follows a closing quote"),
    ("a\nb,2\n", "line 2: it has 1 field, and the header has 2"),
    ("a,1\nb,2,3\n", "line 3: it has 3 fields, and the header has 2"),
]


@pytest.mark.parametrize(("body", "said"), WRONG)
def test_fields_that_are_not_where_they_seem_are_refused_with_the_line(
    body, said, read
):
    with expect_user_error(said):
        read(f"question,answer\n{body}")


def test_quotes_that_can_be_read_in_one_way_are_read(read):
    text = 'question,answer\n"Two\nlines, ""and"" more",1\n\n5" by 6,2\r\n'
    questions = [row["question"] for row in read(text)]
    assert questions == ['Two\nlines, "and" more', '5" by 6']
    with expect_user_error(r"line 2: a quoted field holds line breaks and ','"):
        read(text, strict=True)

    rows = read('question,answer\n"Two\nlines",1\n', strict=True)
    assert rows == [{"question": "Two\nlines", "answer": "1"}]


def test_two_columns_of_one_name_are_refused(read):
    with expect_user_error("two columns are called 'answer'"):
        read("question,answer, answer\na,1,2\n")


def test_a_workbook_is_no_text(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04")
    with expect_user_error(r"it is a workbook, or another archive.*save it as"):
        read_rows(tmp_path / "a.xlsx")


def test_a_column_without_a_name_takes_no_other_columns_name(read):
    with expect_user_error("two columns are called 'Unnamed: 1'"):
        read("Unnamed: 1,,answer\nQ?,2,3\n")


def test_a_line_of_blanks_is_no_row(read):
    rows = read("  \nquestion\nQ 1?\n\t\nQ 2?\n")
    assert rows == [{"question": "Q 1?"}, {"question": "Q 2?"}]
