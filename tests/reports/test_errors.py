"""The error analyses: common-valid subsets, histograms, signed errors and categories."""

import random

import numpy as np
import pytest
from smmd_bench.reports._common_errors import find_unit, select_common_errors
from smmd_bench.reports.error_histogram import EDGES, ErrorHistogram
from smmd_bench.reports.scale_errors import ScaleErrors, count_categories
from smmd_bench.reports.signed_errors import SignedErrors

from tests.changed_runs import without
from tests.runs import planted_run

FIVE = ["0", "10", "25", "7", "40"]


def answer_at_random(rng, answer, share):
    """A number up to 3 too large, or, of such a share, none."""
    return "none" if rng.random() < share else str(int(answer) + rng.randint(0, 3))


def test_the_numbers_are_those_of_a_plain_loop(tmp_path):
    """Each seed has a subset of its own."""
    rng = random.Random(7)
    seeds = (0, 1, 2)
    answers = [str(rng.randint(-50, 50)) for _ in range(40)]
    texts = {}
    for loss, share in {"ce": 0.05, "gce": 0.45, "ntl": 0.1, "smmd": 0}.items():
        texts[loss] = {}
        for seed in seeds:
            texts[loss][seed] = [
                answer_at_random(rng, answer, share) for answer in answers
            ]

    run = planted_run(tmp_path, answers, texts, seeds=seeds)
    run = without(run, tmp_path, loss="ntl", seed=1)
    common = select_common_errors(run)
    assert [*common["pair"].unique()] == ["gce", "ntl", "smmd"]

    for loss, rows in common.groupby("pair", observed=True):
        expected = {"ce": [], loss: []}
        for seed in (0, 2) if loss == "ntl" else seeds:
            for answer, *pair in zip(
                answers, texts["ce"][seed], texts[loss][seed], strict=True
            ):
                if "none" not in pair:
                    for name, text in zip(expected, pair, strict=True):
                        error = abs(int(text) - int(answer))
                        expected[name].append((seed, error))

        for name, errors in expected.items():
            of_loss = rows[rows["loss"] == name]
            pairs = zip(of_loss["seed"], of_loss["error"], strict=True)
            assert [*pairs] == errors


def histogram(path, answers, predictions, **names):
    return ErrorHistogram().build(planted_run(path, answers, predictions, **names))


def test_planted_errors_fall_in_known_bins(tmp_path):
    answers = ["0", "10", "20", "30", "40", "50"]
    ce = ["0", "11", "19", "130", "none", str(10**7)]
    artefact = histogram(tmp_path, answers, {"ce": ce, "smmd": answers})
    data = artefact.data.set_index("loss")
    assert set(data["n"]) == {5}

    # 0; 1 and 1 (log10(2) = 0.30); 100 (2.004); 10^7; the unparsable one is in no bin
    filled = data[data["count"] > 0]
    of_ce = filled.loc["ce"]
    assert of_ce["low"].tolist() == [0, 0.25, 2, 6]
    assert of_ce["count"].tolist() == [1, 2, 1, 1]
    assert of_ce["share"].tolist() == pytest.approx([20, 40, 20, 20])

    counts = data.loc["smmd", "count"].tolist()
    assert len(counts) == len(EDGES)
    assert counts[0] == 5
    assert sum(counts) == 5


def test_both_p90_are_those_of_numpy_on_the_subset_of_the_pair(runs):
    run = runs("word problems")
    table = ErrorHistogram().build(run).table.set_index("Loss")
    assert table.loc["NTL", "n"] != table.loc["SMMD", "n"]

    scores = run.completions.pivot(index="uid", columns="loss", values="error")
    for loss in ("ntl", "smmd"):
        row = table.loc[loss.upper()]
        errors = scores[["ce", loss]].dropna()
        assert row["n"] == str(len(errors))
        require_p90(row["p90 of the error"], errors[loss])
        require_p90(row["CE: p90"], errors["ce"])

        exact = 100 * (errors == 0).mean()
        assert row["Error 0 (%)"] == f"{exact[loss]:.1f}"
        assert row["CE: error 0 (%)"] == f"{exact['ce']:.1f}"


def require_p90(text, errors):
    """The text is the 90th percentile of the errors with an interval around it."""
    value, low, _ = text.replace("[", "").split()
    assert value == f"{np.quantile(errors, 0.9):.1f}"
    assert float(low.rstrip(",")) <= float(value)


def signed(path, answers, predictions, **names):
    return SignedErrors().build(planted_run(path, answers, predictions, **names))


def bins(data, loss, digit):
    """{(low, high): count} of the bins that hold an answer."""
    filled = data[data["count"] > 0]
    rows = filled[(filled["loss"] == loss) & (filled["digit"] == digit)]
    return rows.set_index(["low", "high"])["count"].to_dict()


def test_planted_errors_fall_in_known_bins_of_their_digit(tmp_path):
    answers = ["0", "10", "20", "25", "-35", "7"]
    ce = ["0", "11", "-20", "28", "-32", "none"]
    artefact = signed(tmp_path, answers, {"ce": ce, "smmd": answers})
    data = artefact.data
    of_zero = bins(data, "ce", 0)
    assert of_zero == {(0, 0): 1, (0, 1): 1, (-100, -30): 1}
    of_zero = bins(data, "smmd", 0)
    assert of_zero == {(0, 0): 3}

    # -35 ends in 5; an error of 3 is "up to 3".
    of_five = bins(data, "ce", 5)
    assert of_five == {(1, 3): 2}
    sizes = data.loc[data["digit"] == 5, "n"]
    assert set(sizes) == {2}

    # It does not parse, so that the other has it neither.
    for loss in ("ce", "smmd"):
        assert bins(data, loss, 7) == {}


@pytest.mark.parametrize(
    ("answers", "unit"),
    [
        ([], 1),
        ([3, -10, 2**53], 1),
        ([39.07, 7.51, 8.33, 12], 0.01),
        ([0.5] * 6 + [3] * 4, 0.1),
        ([0.5] * 4 + [3] * 6, 1),
        ([1 / 3, 2 / 3], 1),
        # Of fractions some have few decimals.
        ([3] * 4 + [0.5] * 2 + [1 / 51] * 4, 1),
    ],
)
def test_a_unit_is_the_place_of_the_last_digit_of_most_answers(answers, unit):
    assert find_unit(np.array(answers, dtype=np.float64)) == unit


def test_prices_are_counted_in_cents(tmp_path):
    answers = ["39.07", "56.19", "77.68", "0.29", "1.00"]
    ce = ["39.08", "56.19", "77.38", "0.28", "2.00"]
    texts = {"ce": ce, "smmd": answers}
    artefact = signed(tmp_path, answers, texts)
    assert "in the last place of decimals, 0.01." in artefact.caption
    assert bins(artefact.data, "ce", 7) == {(0, 1): 1}
    assert bins(artefact.data, "ce", 8) == {(-30, -10): 1}

    of_nine = bins(artefact.data, "ce", 9)
    assert of_nine == {(-1, 0): 1, (0, 0): 1}
    of_zero = bins(artefact.data, "ce", 0)
    assert of_zero == {(30, 100): 1}

    # log10 of 0 + 1, twice of 1 + 1, of 30 + 1 and of 100 + 1 cents
    errors = histogram(tmp_path / "more", answers, texts).data
    filled = errors[(errors["count"] > 0) & (errors["loss"] == "ce")]
    assert filled["low"].tolist() == [0, 0.25, 1.25, 2]
    assert filled["count"].tolist() == [1, 2, 1, 1]


def draw_prices(path, wrong):
    """The axis of prices of which CE has every second one wrong, and its labels."""
    answers = ["39.07", "56.19"] * 20
    texts = {"ce": ["39.07", wrong] * 20, "smmd": answers}
    axis = histogram(path, answers, texts).figure.axes[0]
    return axis, [label.get_text() for label in axis.get_xticklabels()]


def test_the_axis_names_errors_and_not_cents(tmp_path):
    _, labels = draw_prices(tmp_path, "58.19")
    assert labels[:4] == ["0", "0.01", "0.1", "1"]


def test_errors_behind_the_last_edge_have_a_bin(tmp_path):
    axis, labels = draw_prices(tmp_path, "20056.19")
    assert labels[-1] == "≥10⁴"
    reference = axis.patches[0].get_data()
    assert reference.values[-1] == 50
    assert reference.edges[-1] <= axis.get_xlim()[1]


def test_a_bar_is_the_difference_of_the_shares_of_both_in_the_row_of_its_digit(
    tmp_path,
):
    texts = {
        "ce": ["3"] * 30 + ["4"] * 20 + ["5"] * 15 + ["-6"] * 5,
        "smmd": ["3"] * 30 + ["4"] * 30 + ["5"] * 10,
    }
    answers = ["3"] * 30 + ["4"] * 40
    (axis,) = signed(tmp_path, answers, texts).figure.axes
    row = axis.get_yticklabels(minor=True)[1]
    assert row.get_text() == "last digit 4\nn = 40"
    filled = {}
    for bar in axis.patches:
        if bar.get_height():
            assert bar.get_y() == row.get_position()[1]
            filled[round(bar.get_center()[0])] = bar.get_height()

    # Exact answers, those up to 1 too large, and those 3 to 10 too small.
    assert filled == pytest.approx({0: 25, 1: -12.5, -3: -12.5})


ENDS = [
    ("4", (0, 0)), ("5", (0, 1)), ("9/2", (0, 1)), ("3", (-1, 0)), ("6", (1, 3)),
    ("-6", (-10, -3)), ("1004", (300, 1000)), ("1005", (1000, np.inf)),
    ("-4996", (-np.inf, -1000)),
]  # fmt: skip


def test_a_bin_holds_its_outer_end(tmp_path):
    answers = [answer for answer, _ in ENDS]
    data = signed(
        tmp_path, ["4"] * len(ENDS), {"ce": answers, "smmd": ["4"] * len(ENDS)}
    ).data
    expected = [ends for _, ends in ENDS]
    assert bins(data, "ce", 4) == {ends: expected.count(ends) for ends in expected}


ANSWERS = ["100"] * 11 + ["0"] * 4
PLANTED = [
    "100", "-100", "10", "1000", "10000", "101", "150", "120", "none", "0.1", "100000",
    "0", "1", "-1", "2",
]  # fmt: skip
COUNTS = {
    "exact": 2, "sign_flip": 1, "scale_x10^-3": 1, "scale_x10^-1": 1, "scale_x10^1": 1,
    "scale_x10^2": 1, "scale_x10^3": 1, "near_miss": 3, "catastrophic": 2, "other": 1, "invalid": 1,
    "scale": 5, "n": 15,
}  # fmt: skip


def test_planted_answers_give_known_counts_and_powers_that_occur_have_rows(tmp_path):
    run = planted_run(tmp_path, ANSWERS, {"ce": PLANTED, "smmd": ANSWERS})
    data = count_categories(run).set_index(["loss", "category"])
    share = data.loc[("ce", "near_miss"), "share"]
    assert share == pytest.approx(20)

    filled = data[data["count"] > 0]
    counts = filled["count"]
    assert counts["ce"].to_dict() == COUNTS
    assert counts["smmd"].to_dict() == {"exact": 15, "n": 15}

    categories = ScaleErrors().build(run).table["Category"]
    is_power = categories.str.startswith("of these")
    assert categories[is_power].tolist() == [
        "of these k = −3",
        "of these k = −1",
        "of these k = +1",
        "of these k = +2",
        "of these k = +3",
    ]


def test_counts_are_means_over_seeds(tmp_path):
    run = planted_run(
        tmp_path, ANSWERS, {"smmd": {0: PLANTED, 1: ANSWERS}}, seeds=(0, 1)
    )
    table = ScaleErrors().build(run).table.set_index("Category")
    assert table.loc["Exact", "SMMD"] == "8.5 (56.67)"
    assert table.loc["Total", "SMMD"] == "15.0"
