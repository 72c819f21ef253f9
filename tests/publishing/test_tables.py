"""Tables as CSV and Markdown, for a terminal, and as LaTeX."""

import csv
import io

import pandas as pd
import pytest
from rich.console import Console

from smmd_bench.publishing import tables
from smmd_bench.publishing.tables import to_latex
from smmd_bench.publishing.terminal import to_terminal

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
        (tables.number(-0.5), "−0.50"),
        (tables.number(-0.001), "0.00"),
        (tables.number(1.234e39), "1.2e+39"),
        (tables.number(None), "–"),
        (tables.number(float("nan")), "–"),
        (tables.number(-1.25, 1, sign=True), "−1.2"),
        (tables.number(0.01, 1, sign=True), "0.0"),
        (tables.with_interval(43.39, 42.4, 44.4, 1), "43.4 [42.4, 44.4]"),
        (tables.with_deviation(43.39, 0.51, 1), "43.4 ± 0.5"),
        (tables.with_deviation(43.39, float("nan"), 1), "43.4"),
        (tables.count(2_140_000), "2.14M"),
        (tables.count(1_543_714_304), "1.54B"),
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


def bold():
    table = pd.DataFrame(
        {
            "Model": ["a", "a", "b"],
            "Loss": ["CE", "50%", "CE"],
            "Acc": ["1.0 [0.5, 1.5]"] * 3,
        }
    )
    table.attrs["bold"] = [(1, "Acc"), (1, "Loss")]
    return table


def test_a_line_break_in_a_name_does_not_end_a_row():
    frame = pd.DataFrame({"a\nb": ["c\r\nd"]})
    assert tables.to_markdown(frame) == "| a b |\n| --- |\n| c  d |\n"
    text = tables.to_csv(pd.DataFrame({"a\rb": ["c\rd", "e\r\nf"]}))
    assert list(csv.reader(io.StringIO(text))) == [["a\nb"], ["c\nd"], ["e\nf"]]


def test_bold_cells_are_marked_in_markdown_and_not_in_csv():
    assert tables.to_markdown(bold()).splitlines()[1:4] == [
        "| --- | --- | ---: |",
        "| a | CE | 1.0 [0.5, 1.5] |",
        "| a | **50%** | **1.0 [0.5, 1.5]** |",
    ]
    assert "*" not in tables.to_csv(bold())


def test_a_hole_that_is_named_leaves_a_column_of_numbers_on_the_right():
    frame = pd.DataFrame({"Acc": ["1.0 [0.5, 1.5]", "failed", "not run", tables.DASH]})
    assert tables.is_numeric(tables.as_text(frame)["Acc"])
    assert not tables.is_numeric(
        tables.as_text(pd.DataFrame({"Status": ["failed"]}))["Status"]
    )


def rendered(frame, width=100, **settings):
    console = Console(file=io.StringIO(), width=width, **settings)
    console.print(to_terminal(frame, "A title", "A caption.", width))
    return str(console.file.getvalue())


def wide(columns):
    frame = pd.DataFrame(
        {f"Col {at}": [f"{at}.5 [{at}.25, {at}.75]"] * 2 for at in range(columns)}
    )
    frame.insert(0, "Loss", ["cross-entropy at the numeric tokens", "SMMD"])
    return frame


def test_columns_that_do_not_fit_are_named_and_no_number_is_broken():
    table = wide(6).assign(Seeds=["2", "3"])
    table.attrs["optional"] = ["Col 2"]
    columns = [f"Col {at}" for at in range(6)]
    table.loc[0, columns] = "9.5 [9.25, 9.75]"
    text = rendered(table)
    widths = [len(line) for line in text.splitlines()]
    assert max(widths) <= 100
    assert "Seeds" in text

    words = " ".join(text.split())
    assert "Not shown at this width: Col 2, Col 5." in words
    for at in (0, 1, 3, 4):
        assert f"{at}.5 [{at}.25, {at}.75]" in text
    assert "Not shown" not in rendered(table, 200)


def test_texts_that_people_copy_are_in_one_line():
    uid = "table-validation-1234"
    answers = ["many words " * 9, "an answer"]
    table = pd.DataFrame({"uid": [uid, "table-test-5"], "answer": answers})
    assert uid not in rendered(table, 40)
    table.attrs["whole"] = ["uid"]
    assert uid in rendered(table, 40)


def test_what_is_not_shown_says_where_it_is_and_a_task_stands_once():
    task = "table[path=numbers_of_a_long_name.csv,question=Question,answer=Answer]"
    table = wide(4)
    table.insert(0, "Task", task)
    table = pd.concat([table, table.assign(Task="other")], ignore_index=True)
    for at in range(4):
        table.loc[0, f"Col {at}"] = "9.5 [9.25, 9.75]"

    console = Console(file=io.StringIO(), width=80)
    console.print(to_terminal(table, "A title", "", 80, "tables/x.csv"))
    text = console.file.getvalue()
    assert "Not shown at this width: Col 3 (see tables/x.csv)." in text
    lines = text.splitlines()
    rows = [line for line in lines if ".75]" in line]
    first, second, third, fourth = rows
    assert first.startswith("table ")
    assert third.startswith("other ")
    for row in (second, fourth):
        assert row.startswith(" ")


def test_columns_that_never_change_go_above_the_table():
    lines = rendered(FRAME.assign(Model="builtin/tiny")).splitlines()
    assert [line.rstrip() for line in lines[:2]] == ["A title", "Model builtin/tiny"]
    assert sum("builtin/tiny" in line for line in lines) == 1


def test_bold_cells_have_a_star_after_their_value_and_are_bold_where_there_are_colours():
    # no markup
    assert "smmd[sigma=1]" in rendered(pd.DataFrame({"Loss": ["smmd[sigma=1]", "ce"]}))
    lines = [line.split() for line in rendered(bold()).splitlines()]
    assert ["a", "50%*", "1.0*", "[0.5,", "1.5]"] in lines
    table = bold()
    table.attrs["bold_means"] = "the best loss"
    assert "A caption. *: the best loss." in rendered(table)
    assert "\x1b[1m1.0* [0.5, 1.5]\x1b[0m" in rendered(bold(), force_terminal=True)


def test_latex_is_booktabs_with_special_letters_escaped_and_bold_cells():
    frame = pd.DataFrame(
        {"Loss": ["50%", "a|b_c"], "Acc": ["43.4 [42.4, 44.4]", "–"], "n": [9, 2]}
    )
    frame.attrs["bold"] = [(0, "Loss")]
    text = to_latex(frame, "50 % of x_1 & more: ±", "tab:x")
    assert text.isascii()
    assert r"\begin{table}" in text
    assert r"\begin{table*}" in to_latex(wide(5), "C.", "tab:x")
    assert r"\caption{50 \% of x\_1 \& more: $\pm$}" in text
    assert r"\label{tab:x}" in text

    rules = (r"\begin{tabular}{lrr}", r"\toprule", r"\midrule", r"\bottomrule")
    rows = (r"\textbf{50\%} & 43.4 [42.4, 44.4] & 9 \\", r"a\textbar{}b\_c & -- & 2 \\")
    assert [part for part in (*rules, *rows) if part not in text] == []


def test_a_cell_that_begins_a_row_is_no_option_of_the_command_before_it():
    text = to_latex(
        pd.DataFrame({"[n]": ["[0.0, 9.9]", "* x"], "m": ["[a]", "*"]}), "C.", "tab:x"
    )
    for row in (r"{[}n] & m \\", r"{[}0.0, 9.9] & {[}a] \\", r"{*} x & {*} \\"):
        assert row in text


def test_latex_has_each_model_once_over_its_rows_and_notes_below():
    cells = ["a x CE", "a x SMMD", "a y CE", "b y CE"]
    frame = pd.DataFrame(
        [row.split() for row in cells], columns=["Model", "Task", "Loss"]
    )
    text = to_latex(frame, "C.", "tab:x", ["Intervals have 95 %.", "Δ is paired."])
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert rows[1:] == [
        r"\multirow[t]{3}{*}{a} & \multirow[t]{2}{*}{x} & CE \\", r" &  & SMMD \\",
        r" & y & CE \\", r"b & y & CE \\",
    ]  # fmt: skip
    assert text.startswith("% \\usepackage{booktabs,graphicx,multirow}")

    below = text.partition(r"\end{tabular}}")[2]
    assert r"{\footnotesize Intervals have 95 \%. $\Delta$ is paired.}" in below
    assert "footnotesize" not in to_latex(frame, "C.", "tab:x")


def test_greek_raised_and_lowered_letters_are_latex():
    text = to_latex(pd.DataFrame({"rᵀKr": ["10⁻³ σ² ΛΩ₂ Cramér ™"]}), "C.", "tab:x")
    assert "r$^{T}$Kr" in text
    assert (
        r"10$^{-}$$^{3}$ $\sigma$$^{2}$ $\Lambda$$\Omega$$_{2}$ Cramér $^{TM}$" in text
    )
