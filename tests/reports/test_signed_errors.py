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


def test_the_table_has_the_losses_that_are_drawn_and_the_data_have_all(tmp_path):
    losses = ["ce", *(f"smmd[sigma={at}]" for at in range(5, 10)), "ntl", "smmd"]
    answers = ["1", "2"] * 30
    artefact = built(tmp_path, answers, dict.fromkeys(losses, answers))
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


def test_a_row_of_panels_a_digit_of_enough_examples_and_a_column_a_loss(tmp_path):
    answers = ["0"] * 30 + ["3"] * 29 + ["5"] * 31
    ntl = ["none", *answers[1:]]
    off = ["4", *answers[1:]]
    losses = {"ce": off, "ntl": ntl, "smmd": answers}
    artefact = built(tmp_path, answers, losses, seeds=(0, 1))
    axes = artefact.figure.axes
    assert [axis.get_ylabel() for axis in axes] == ["last digit 0", "", "last digit 5", ""]
    assert [axis.get_title() for axis in axes[:2]] == [
        "NTL over CE\nn = 178, 2 seeds", "SMMD over CE\nn = 180, 2 seeds"
    ]  # fmt: skip
    shown = [[text.get_text() for text in axis.texts] for axis in axes]
    assert shown == [[], ["n = 60"], ["n = 62"], ["n = 62"]]
    few = [f"last digit {d} of" for d in ("0, 1, 2, 3, 4, 6, 7, 8, 9", "1, 2, 3, 4, 6, 7, 8, 9")]
    assert (
        f"test examples: {few[0]} NTL (builtin/tiny, gsm8k), {few[1]} SMMD (builtin/tiny, gsm8k)."
    ) in words(artefact)


def test_the_axis_goes_as_far_as_there_are_answers(tmp_path):
    answers = ["5"] * 30
    for off, end in (("6", 1), ("900", BOUNDS.index(1000))):
        losses = {"ce": [off, *answers[1:]], "smmd": answers}
        (axis,) = built(tmp_path / off, answers, losses).figure.axes
        assert axis.get_xlim() == (-end - 0.8, end + 0.8)


def test_a_subset_without_an_example_has_no_panel(tmp_path):
    artefact = built(tmp_path, ["1", "2"], {"ce": ["none", "2"], "smmd": ["1", "none"]})
    assert set(artefact.data["count"]) == {0}
    assert artefact.figure is None
