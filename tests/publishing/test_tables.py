import csv
import io

import pandas as pd
import pytest
from rich.console import Console

from smmd_bench.publishing import tables
from smmd_bench.publishing.terminal_table import to_terminal

FRAME = pd.DataFrame(
    {
        "Loss": ["CE", "a|b_c"],
        "Acc (%)": ["43.4 [42.4, 44.4]", tables.DASH],
        "R²": ["−0.5", "0.67"],
        "n": [10000, 200],
        "share": [1 / 3, float("nan")],
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (tables.number(43.394), "43.39"),
        (tables.number(-0.5), "−0.50"),
        (tables.number(-0.001), "0.00"),
        (tables.number(12345.6), "12345.60"),
        (tables.number(1.234e39), "1.2e+39"),
        (tables.number(-1e12), "−1e+12"),
        (tables.number(None), "–"),
        (tables.number(float("nan")), "–"),
        (tables.number(float("inf")), "–"),
        (tables.number(1.25, 1, sign=True), "+1.2"),
        (tables.number(-1.25, 1, sign=True), "−1.2"),
        (tables.number(0.01, 1, sign=True), "0.0"),
        (tables.with_interval(43.39, 42.4, 44.4, 1), "43.4 [42.4, 44.4]"),
        (tables.with_interval(43.39, None, 44.4, 1), "43.4"),
        (tables.with_deviation(43.39, 0.51, 1), "43.4 ± 0.5"),
        (tables.with_deviation(43.39, None, 1), "43.4"),
        (tables.count(12), "12"),
        (tables.count(2_140_000), "2.14M"),
        (tables.count(494_032_768), "494M"),
        (tables.count(1_543_714_304), "1.54B"),
        (tables.p_value(1.0), "1.000"),
        (tables.p_value(0.0342), "0.034"),
        (tables.p_value(1e-12), "<0.001"),
    ],
)
def test_numbers_as_text(text, expected):
    assert text == expected


def test_csv_is_plain_and_keeps_numbers_in_full():
    lines = tables.to_csv(FRAME).splitlines()
    assert lines[1] == 'CE,"43.4 [42.4, 44.4]",-0.5,10000,0.3333333333333333'
    assert lines[2] == "a|b_c,,0.67,200,"


def test_markdown_escapes_its_bars_and_aligns_numbers_right():
    assert tables.to_markdown(FRAME).splitlines() == [
        "| Loss | Acc (%) | R² | n | share |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| CE | 43.4 [42.4, 44.4] | −0.5 | 10000 | 0.333333 |",
        "| a\\|b_c | – | 0.67 | 200 | – |",
    ]


def rendered(frame, width=100):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(to_terminal(frame, "A title", "A caption", width))
    return str(console.file.getvalue())


def wide(columns):
    return pd.DataFrame(
        {f"column {at}": [f"{at}.5 [{at}.25, {at}.75]", "1.0 ± 0.1"] for at in range(columns)}
    )


@pytest.mark.parametrize("columns", [7, 12])
def test_a_wide_table_puts_intervals_in_a_second_line_and_loses_nothing(columns):
    text = rendered(wide(columns))
    assert max(map(len, text.splitlines())) <= 100
    assert all(f"[{at}.25," in text and f"{at}.75]" in text for at in range(columns))


def test_a_table_of_many_models_too_wide_for_one_is_split_by_model():
    table = pd.concat([wide(7).assign(n=at) for at in (1, 2)])
    table.insert(0, "Model", ["some/long-name", "some/long-name", "other", "other"])
    lines = [line.rstrip() for line in rendered(table).splitlines()]
    assert lines.count("Model some/long-name · n 1") == lines.count("Model other · n 2") == 1
    assert max(map(len, lines)) <= 100


def test_a_table_of_one_model_with_too_many_columns_goes_on_below():
    table = wide(14)
    table.insert(0, "Loss", ["CE", "SMMD"])
    lines = (text := rendered(table)).splitlines()
    assert max(map(len, lines)) <= 100
    heads = [line.split() for line in lines if line.startswith("Loss")]
    assert len(heads) == 3
    assert sum(line.startswith(("CE ", "SMMD ")) for line in lines) == 6
    assert all(f"[{at}.25, {at}.75]" in text for at in range(14))  # no number is broken


def test_columns_that_never_change_go_above_the_table():
    same = FRAME.assign(Model="builtin/tiny")
    lines = rendered(same).splitlines()
    assert lines[:2] == ["A title".ljust(len(lines[0])), "Model builtin/tiny".ljust(len(lines[1]))]
    assert sum("builtin/tiny" in line for line in lines) == 1


def test_brackets_are_not_taken_for_markup():
    text = rendered(pd.DataFrame({"SMMD[kernel=random]": ["smmd[sigma=1]", "ce"]}))
    assert "SMMD[kernel=random]" in text
    assert "smmd[sigma=1]" in text


def test_a_share_goes_in_a_second_line_where_the_table_is_too_wide():
    table = pd.DataFrame({f"loss {at}": ["726 (55.04)", "762 (57.77)"] for at in range(10)})
    lines = [line.split() for line in rendered(table).splitlines()]
    assert ["726"] * 10 in lines
    assert ["(55.04)"] * 10 in lines


def bold():
    table = pd.DataFrame(
        {"Model": ["a", "a", "b"], "Loss": ["CE", "50%", "CE"], "Acc": ["1.0 [0.5, 1.5]"] * 3}
    )
    table.attrs["bold"] = [(1, "Acc"), (1, "Loss")]
    return table


def test_a_line_break_in_a_name_does_not_end_a_row_of_markdown():
    frame = pd.DataFrame({"a\nb": ["c\r\nd"]})
    assert tables.to_markdown(frame) == "| a b |\n| --- |\n| c  d |\n"


def test_a_carriage_return_does_not_end_a_row_of_csv():
    text = tables.to_csv(pd.DataFrame({"a\rb": ["c\rd", "e\r\nf"]}))
    assert list(csv.reader(io.StringIO(text))) == [["a\nb"], ["c\nd"], ["e\nf"]]


def test_bold_cells_are_marked_in_markdown_and_not_in_csv():
    assert tables.to_markdown(bold()).splitlines()[1:4] == [
        "| --- | --- | ---: |",
        "| a | CE | 1.0 [0.5, 1.5] |",
        "| a | **50%** | **1.0 [0.5, 1.5]** |",
    ]
    assert "*" not in tables.to_csv(bold())


def test_bold_cells_have_a_star_after_their_value_on_a_terminal():
    lines = [line.split() for line in rendered(bold()).splitlines()]
    assert ["a", "50%*", "1.0*", "[0.5,", "1.5]"] in lines
    assert ["b", "CE", "1.0", "[0.5,", "1.5]"] in lines


def test_the_star_stays_with_its_value_where_a_table_is_broken_and_split():
    table = pd.concat([wide(7).assign(n=at) for at in (1, 2)], ignore_index=True)
    table.insert(0, "Model", ["some/long-name", "some/long-name", "other", "other"])
    table.attrs["bold"] = [[2, "column 3"]]  # as JSON gives it back
    text = rendered(table)
    assert text.count("*") == 1
    assert "3.5*" in text.partition("Model other")[2]


def test_bold_is_bold_on_a_terminal_with_colours():
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    console.print(to_terminal(bold(), "A title"))
    assert "\x1b[1m1.0* [0.5, 1.5]\x1b[0m" in str(console.file.getvalue())


def test_a_hole_that_is_named_leaves_a_column_of_numbers_on_the_right():
    frame = pd.DataFrame({"Acc": ["1.0 [0.5, 1.5]", "failed", "not run", tables.DASH]})
    assert tables.is_numeric(tables.as_text(frame)["Acc"])
    assert not tables.is_numeric(tables.as_text(pd.DataFrame({"Status": ["failed"]}))["Status"])


def test_a_wide_table_whose_first_column_stays_with_one_value_is_not_divided_forever():
    rows = pd.DataFrame({"Loss": ["SMMD", "SMMD"], "Metric": ["Acc", "MAE"], "Δ": ["x" * 90] * 2})
    rows["Δ"] = [f"{cell}{at}" for at, cell in enumerate(rows["Δ"])]
    rows.attrs["values"] = ["Loss", "Metric", "Δ"]
    console = Console(width=60, color_system=None)
    with console.capture() as captured:
        console.print(to_terminal(rows, "title", "", 60))
    assert captured.get().count("SMMD") == 2
