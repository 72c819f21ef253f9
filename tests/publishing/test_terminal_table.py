"""What a terminal shows of a table with optional columns, and of the line above a table."""

import io

import pandas as pd
import pytest
from rich.console import Console

from smmd_bench.publishing.terminal_table import to_terminal

LOSSES = ("GCE", "NTL", "NTIL", "SMMD", "Brier", "CE, other seeds")


def gain_rows(model="m", losses=LOSSES):
    """Two metrics a loss, as a verdict over several seeds has them."""
    rows = [
        (model, "gsm8k", loss, metric, ce, verdict, delta, "1.000", "3" if at else "1", n)
        for at, loss in enumerate(reversed(losses))
        for metric, ce, verdict, delta, n in (
            ("Acc (%)", "47.5", "cannot tell (below ±19.4)", "+3.1 [−3.4, +9.7]", "1,319"),
            ("MAE", "257.27", "cannot tell (below ±890.80)", "−80.91 [−383.22, +221.40]", "1,204"),
        )
    ]
    names = ["Model", "Task", "Loss", "Metric", "CE", "Verdict", "Δ", "p", "Seeds", "n"]
    frame = pd.DataFrame(rows[::-1], columns=names)
    frame.attrs["values"] = ["Loss", "Metric", "CE", "Verdict", "Δ", "p"]
    frame.attrs["optional"] = ["n", "Seeds", "p", "CE"]
    return frame


def shown(frame, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(to_terminal(frame, "Title", "Caption.", width))
    lines = [line.rstrip() for line in str(console.file.getvalue()).splitlines()]
    assert max(map(len, lines)) <= width
    return lines


def heads(lines):
    return [line.split() for line in lines if line.startswith("Loss")]


@pytest.mark.parametrize(
    ("width", "left"),
    [
        (120, "Caption."),
        (97, "Caption. Not shown at this width: n."),
        (80, "Caption. Not shown at this width: n, Seeds, p, CE."),
    ],
)
def test_optional_columns_go_in_their_order_and_the_caption_names_them(width, left):
    assert shown(gain_rows(), width)[-1] == left


def test_all_losses_of_a_model_stay_in_one_table_with_a_line_each():
    lines = shown(gain_rows(losses=LOSSES[:-1]), 80)
    assert heads(lines) == [["Loss", "Metric", "CE", "Verdict", "Δ"]]
    assert len(lines) == 1 + 1 + 1 + 10 + 1  # title, what never changes, head, rows, caption


def test_several_models_have_a_table_each_with_the_same_columns():
    both = pd.concat([gain_rows("first"), gain_rows("second")], ignore_index=True)
    both.attrs = gain_rows().attrs
    lines = shown(both, 80)
    assert heads(lines) == [["Loss", "Metric", "Verdict", "Δ"]] * 2
    assert [line for line in lines if "Model" in line] == [
        f"Model {name} · Task gsm8k" for name in ("first", "second")
    ]


def test_a_long_label_is_broken_before_a_number_is():
    frame = gain_rows(losses=("SMMD[sigma=1+2+3,lambda=5]", "CE"))
    lines = shown(frame, 80)
    assert [line.split()[:2] for line in lines if "[sigma=" in line] == [["[sigma=1+2+3,"]] * 2
    assert sum("−80.91 [−383.22, +221.40]" in line for line in lines) == 2


def test_an_optional_column_that_never_changes_is_kept_above_the_table():
    lines = shown(gain_rows().assign(Seeds="3"), 80)
    assert lines[1] == "Model m · Task gsm8k · Seeds 3"
    assert lines[-1] == "Caption. Not shown at this width: n, p, CE."


def test_numbers_go_in_two_lines_where_no_column_is_left_to_leave_out():
    frame = gain_rows()
    frame["Δ"] = frame["Δ"].str.replace("−383", "−1234567383")
    lines = shown(frame, 80)
    assert len(heads(lines)) == 1
    assert sum("[−1234567383.22, +221.40]" in line for line in lines) == len(LOSSES)
    assert not any("−80.91 [" in line for line in lines)


def test_one_row_that_is_too_wide_has_what_is_no_value_above_it():
    frame = gain_rows(losses=("SMMD",))[1:].reset_index(drop=True)
    frame.attrs = {"values": gain_rows().attrs["values"]}
    lines = shown(frame.assign(Task="arithmetic[level=medium,operations=1..2]"), 100)
    assert len(heads(lines)) == 1
    assert lines[1].startswith("Model m · Task arithmetic[level=medium,operations=1..2] · Seeds")


def test_the_line_above_a_table_breaks_no_name_from_its_value():
    frame = pd.DataFrame({"Task": ["arithmetic[operations=1..2]"] * 2, "n": "2,000", "x": [1, 2]})
    assert shown(frame, 34)[1:3] == ["Task arithmetic[operations=1..2] ·", "n 2,000"]
