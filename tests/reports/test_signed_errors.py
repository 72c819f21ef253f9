import numpy as np
from smmd_bench.reports.signed_errors import BOUNDS, SignedErrors

from tests.reports.golden import words
from tests.runs import planted_run


def built(path, answers, predictions, **names):
    return SignedErrors().build(planted_run(path, answers, predictions, **names))


def bins(data, loss, digit):
    """{(low, high): count} of the bins that hold an answer."""
    found = data[(data["loss"] == loss) & (data["digit"] == digit) & (data["count"] > 0)]
    ends = zip(found["low"], found["high"], strict=True)
    return dict(zip(ends, found["count"], strict=True))


def test_planted_errors_fall_in_known_bins_of_their_digit(tmp_path):
    answers = ["0", "10", "20", "25", "-35", "7"]
    ce = ["0", "11", "-20", "28", "-32", "none"]
    data = built(tmp_path, answers, {"ce": ce, "smmd": answers}).data
    assert bins(data, "ce", 0) == {(0, 0): 1, (0, 1): 1, (-100, -30): 1}
    assert bins(data, "ce", 5) == {(1, 3): 2}  # -35 ends in 5; an error of 3 is "up to 3"
    assert bins(data, "smmd", 0) == {(0, 0): 3}
    assert bins(data, "ce", 7) == {}  # does not parse, so that the other has it neither
    assert bins(data, "smmd", 7) == {}
    assert data.loc[data["digit"] == 5, "n"].unique().tolist() == [2]


ENDS = [
    ("4", (0, 0)), ("5", (0, 1)), ("9/2", (0, 1)), ("3", (-1, 0)), ("6", (1, 3)),
    ("-6", (-10, -3)), ("1004", (300, 1000)), ("1005", (1000, np.inf)),
    ("-4996", (-np.inf, -1000)),
]  # fmt: skip


def test_a_bin_holds_its_outer_end(tmp_path):
    answers = [answer for answer, _ in ENDS]
    data = built(tmp_path, ["4"] * len(ENDS), {"ce": answers, "smmd": ["4"] * len(ENDS)}).data
    expected = [ends for _, ends in ENDS]
    assert bins(data, "ce", 4) == {ends: expected.count(ends) for ends in expected}


def test_what_is_outside_the_window_is_counted_and_named(tmp_path):
    ce, smmd = ["1", "9999", "-9999"], ["9" * 400, "2", "3"]
    artefact = built(tmp_path, ["1", "2", "3"], {"ce": ce, "smmd": smmd})
    assert (
        "Outside -1,000 to 1,000, counted in the shares and not drawn: SMMD 1 of 3; "
        "CE beside SMMD 2 of 3."
    ) in words(artefact)
    assert artefact.data.groupby(["loss", "digit"], observed=True)["share"].sum().max() == 100


def test_answers_that_are_no_whole_number_are_left_out_and_counted(tmp_path):
    answers = ["1", "3/2", "0.25", str(10**17)]
    artefact = built(tmp_path, answers, {"ce": answers, "smmd": answers})
    assert artefact.data.loc[artefact.data["loss"] == "ce", "count"].sum() == 1
    assert "Left out, as the true answer is no whole number: SMMD 3 of 4." in words(artefact)
    assert artefact.figure.axes[0].get_title() == "SMMD over CE\nn = 1"


def test_the_table_has_the_exact_answers_of_a_pair_by_digit(tmp_path):
    losses = {"ce": ["5", "5", "20"], "smmd": ["5", "15", "2"]}
    table = built(tmp_path, ["5", "15", "20"], losses).table.set_index("Last digit")
    columns = ["Exact (%)", "CE: exact (%)"]
    assert [text.split()[0] for text in table.loc["5", columns]] == ["100.0", "50.0"]
    assert [text.split()[0] for text in table.loc["0", columns]] == ["0.0", "100.0"]
    assert list(table.loc["1", ["n", *columns]]) == ["0", "–", "–"]


def test_each_loss_has_the_digits_that_it_and_the_reference_answer(tmp_path):
    answers = ["5", "15", "25", "35"]
    losses = {"ce": ["5", "15", "0", "none"], "gce": ["none", "none", "25", "35"], "smmd": answers}
    artefact = built(tmp_path, answers, losses)
    fives = artefact.table.set_index(["Last digit", "Loss"]).loc["5"]
    assert fives["n"].to_dict() == {"GCE": "1", "SMMD": "3"}
    beside = {loss: text.split()[0] for loss, text in fives["CE: exact (%)"].items()}
    assert beside == {"GCE": "0.0", "SMMD": "66.7"}
    shown = [axis.texts[0].get_text() for axis in artefact.figure.axes[10:12]]
    assert shown == ["n = 1", "n = 3"]


def test_the_table_has_the_losses_that_are_drawn_and_the_data_have_all(tmp_path):
    losses = ["ce", *(f"smmd[sigma={at}]" for at in range(5, 10)), "ntl", "smmd"]
    artefact = built(tmp_path, ["1", "2"], dict.fromkeys(losses, ("1", "2")))
    drawn = [*(f"SMMD[sigma={at}]" for at in (5, 6, 7)), "NTL", "SMMD"]
    assert list(artefact.table["Loss"].unique()) == drawn
    assert f"({', '.join(drawn)}); the CSV of the figure has all." in words(artefact)
    assert list(artefact.data["pair"].unique()) == losses[1:]


def test_a_second_seed_of_the_same_examples_does_not_narrow_an_interval(tmp_path):
    answers, losses = ["5", "15"], {"ce": ["5", "0"], "smmd": ["5", "15"]}
    one, two = (
        built(tmp_path / name, answers, losses, seeds=seeds).table.set_index("Last digit").loc["5"]
        for name, seeds in (("one", (0,)), ("two", (0, 1)))
    )
    assert one["CE: exact (%)"] == two["CE: exact (%)"]
    assert (one["n"], two["n"]) == ("2", "4")


def test_a_row_of_panels_a_digit_and_a_column_a_loss(run):
    axes = SignedErrors().build(run).figure.axes
    assert len(axes) == 10 * 2
    titles = [axis.get_title().splitlines() for axis in axes[:2]]
    assert [title[0] for title in titles] == ["NTL over CE", "SMMD over CE"]
    assert all(title[1].endswith(", 2 seeds") for title in titles)
    assert axes[0].get_xlim()[1] > len(BOUNDS)


def test_a_subset_without_an_example_is_shown_as_empty(tmp_path):
    artefact = built(tmp_path, ["1", "2"], {"ce": ["none", "2"], "smmd": ["1", "none"]})
    assert set(artefact.data["count"]) == {0}
    artefact.figure.canvas.draw()
