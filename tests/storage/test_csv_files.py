"""CSV from elsewhere: what parts its columns, its encoding, and quotes out of place."""

import pytest

from smmd_bench.errors import UserError
from smmd_bench.storage.text_rows import read_rows

ROWS = [{"question": f"Q {at}?", "answer": str(at)} for at in range(6)]


def text_of(separator=",", rows=ROWS):
    lines = [separator.join(["question", "answer"])]
    return "\n".join([*lines, *(separator.join(row.values()) for row in rows)]) + "\n"


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


def test_a_header_with_two_other_signs_needs_the_separator(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(text_of(";").replace("answer", "answer|unit"))
    assert len(read_rows(file, strict=True)[0]) == 1
    assert [*read_rows(file, separator=";")[0]] == ["question", "answer|unit"]


def test_another_encoding_is_named_or_refused_with_the_line(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(text_of().replace("Q 3", "Qé 3").encode("cp1252"))
    with pytest.raises(
        UserError, match=r"a\.csv is not .*\(line 5 is not UTF-8: .*encoding=cp1252"
    ):
        read_rows(file)

    assert read_rows(file, encoding="cp1252")[3]["question"] == "Qé 3?"
    with pytest.raises(UserError, match="klingon is no encoding"):
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
    body, said, tmp_path
):
    file = tmp_path / "a.csv"
    file.write_text(f"question,answer\n{body}")
    with pytest.raises(UserError) as error:
        read_rows(file)
    assert said in str(error.value)


def test_quotes_that_can_be_read_in_one_way_are_read(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text('question,answer\n"Two\nlines, ""and"" more",1\n\n5" by 6,2\r\n')
    assert [row["question"] for row in read_rows(file)] == [
        'Two\nlines, "and" more',
        '5" by 6',
    ]
    with pytest.raises(
        UserError, match=r"line 2: a quoted field holds line breaks and ','"
    ):
        read_rows(file, strict=True)
    file.write_text('question,answer\n"Two\nlines",1\n')
    assert read_rows(file, strict=True) == [{"question": "Two\nlines", "answer": "1"}]


def test_two_columns_of_one_name_are_refused(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("question,answer, answer\na,1,2\n")
    with pytest.raises(UserError, match="two columns are called 'answer'"):
        read_rows(file)


def test_a_workbook_is_no_text(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(
        UserError, match=r"it is a workbook, or another archive.*save it as"
    ):
        read_rows(tmp_path / "a.xlsx")


def test_a_column_without_a_name_takes_no_other_columns_name(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("Unnamed: 1,,answer\nQ?,2,3\n", encoding="utf-8")
    with pytest.raises(UserError, match="two columns are called 'Unnamed: 1'"):
        read_rows(file)


def test_a_line_of_blanks_is_no_row(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("  \nquestion\nQ 1?\n\t\nQ 2?\n", encoding="utf-8")
    assert read_rows(file) == [{"question": "Q 1?"}, {"question": "Q 2?"}]
