import io

import pandas as pd
import pytest
from rich.console import Console

from smmd_bench.publishing import tables

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
    ("value", "text"),
    [
        (43.394, "43.39"), (-0.5, "−0.50"), (-0.001, "0.00"), (0.0, "0.00"), (12345.6, "12345.60"),
        (1.234e39, "1.2e+39"), (-1e12, "−1e+12"), (None, "–"), (float("nan"), "–"),
        (float("inf"), "–"),
    ],
)  # fmt: skip
def test_numbers(value, text):
    assert tables.number(value) == text


def test_differences_carry_their_sign_but_zero_has_none():
    assert [tables.number(v, 1, sign=True) for v in (1.25, -1.25, 0.01)] == ["+1.2", "−1.2", "0.0"]


def test_an_interval_stands_in_brackets_and_is_left_out_where_there_is_none():
    assert tables.with_interval(43.39, 42.4, 44.4, 1) == "43.4 [42.4, 44.4]"
    assert tables.with_interval(43.39, None, 44.4, 1) == "43.4"


def test_one_seed_has_no_deviation():
    assert tables.with_deviation(43.39, 0.51, 1) == "43.4 ± 0.5"
    assert tables.with_deviation(43.39, None, 1) == "43.4"


@pytest.mark.parametrize(
    ("value", "text"),
    [(12, "12"), (2_140_000, "2.14M"), (494_032_768, "494M"), (1_543_714_304, "1.54B")],
)
def test_parameter_counts(value, text):
    assert tables.count(value) == text


def test_tiny_p_values_are_not_written_as_zero():
    assert [tables.p_value(p) for p in (1.0, 0.0342, 1e-12)] == ["1.000", "0.034", "<0.001"]


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


def test_latex_is_booktabs_with_every_special_letter_escaped():
    text = tables.to_latex(FRAME, "50 % of x_1 & more: ±", "tab:x")
    assert text.isascii()
    assert r"\caption{50 \% of x\_1 \& more: $\pm$}" in text
    assert r"a\textbar{}b\_c & -- & 0.67 & 200 & -- \\" in text
    assert [rule for rule in (r"\toprule", r"\midrule", r"\bottomrule") if rule in text]
    assert r"\begin{tabular}{lrrrr}" in text


def rendered(frame: pd.DataFrame, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(tables.to_terminal(frame, "A title", "A caption", width))
    return str(console.file.getvalue())


def wide(columns: int) -> pd.DataFrame:
    return pd.DataFrame(
        {f"column {at}": [f"{at}.5 [{at}.25, {at}.75]", "1.0 ± 0.1"] for at in range(columns)}
    )


def test_a_wide_table_puts_intervals_in_a_second_line():
    text = rendered(wide(7))
    assert max(map(len, text.splitlines())) <= 100
    assert all(f"[{at}.25, {at}.75]" in text for at in range(7))


def test_a_still_wider_table_loses_nothing():
    text = rendered(wide(12))
    assert max(map(len, text.splitlines())) <= 100
    assert all(f"[{at}.25," in text and f"{at}.75]" in text for at in range(12))


def test_a_table_of_many_models_too_wide_for_one_is_split_by_model():
    table = pd.concat([wide(7).assign(n=at) for at in (1, 2)])
    table.insert(0, "Model", ["some/long-name", "some/long-name", "other", "other"])
    lines = [line.rstrip() for line in rendered(table).splitlines()]
    assert lines.count("Model some/long-name · n 1") == lines.count("Model other · n 2") == 1
    assert max(map(len, lines)) <= 100


def test_columns_that_never_change_go_above_the_table():
    same = FRAME.assign(Model="builtin/tiny")
    lines = rendered(same).splitlines()
    assert lines[:2] == ["A title".ljust(len(lines[0])), "Model builtin/tiny".ljust(len(lines[1]))]
    assert sum("builtin/tiny" in line for line in lines) == 1


def test_text_in_brackets_is_not_taken_for_markup():
    assert "smmd[sigma=1]" in rendered(pd.DataFrame({"Loss": ["smmd[sigma=1]", "ce"]}))


def test_a_heading_in_brackets_is_not_taken_for_markup():
    assert "SMMD[kernel=random]" in rendered(pd.DataFrame({"SMMD[kernel=random]": ["1", "2"]}))


def test_a_share_goes_in_a_second_line_where_the_table_is_too_wide():
    table = pd.DataFrame({f"loss {at}": ["726 (55.04)", "762 (57.77)"] for at in range(10)})
    lines = [line.split() for line in rendered(table).splitlines()]
    assert ["726"] * 10 in lines
    assert ["(55.04)"] * 10 in lines


def bold() -> pd.DataFrame:
    table = pd.DataFrame(
        {"Model": ["a", "a", "b"], "Loss": ["CE", "50%", "CE"], "Acc": ["1.0 [0.5, 1.5]"] * 3}
    )
    table.attrs["bold"] = [(1, "Acc"), (1, "Loss")]
    return table


def test_bold_cells_are_marked_in_markdown_and_latex_and_not_in_csv():
    assert tables.to_markdown(bold()).splitlines()[1:4] == [
        "| --- | --- | ---: |",
        "| a | CE | 1.0 [0.5, 1.5] |",
        "| a | **50%** | **1.0 [0.5, 1.5]** |",
    ]
    text = tables.to_latex(bold(), "", "")
    assert r"a & \textbf{50\%} & \textbf{1.0 [0.5, 1.5]} \\" in text
    assert text.count("textbf") == 2
    plain = bold()
    plain.attrs.clear()
    assert tables.to_csv(bold()) == tables.to_csv(plain)


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
    console.print(tables.to_terminal(bold(), "A title"))
    assert "\x1b[1m1.0* [0.5, 1.5]\x1b[0m" in str(console.file.getvalue())


def test_a_hole_that_is_named_leaves_a_column_of_numbers_on_the_right():
    frame = pd.DataFrame({"Acc": ["1.0 [0.5, 1.5]", "failed", "not run", tables.DASH]})
    assert tables.is_numeric(tables.as_text(frame)["Acc"])
    assert not tables.is_numeric(tables.as_text(pd.DataFrame({"Status": ["failed"]}))["Status"])
