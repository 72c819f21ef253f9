"""The error analyses: common-valid subsets, histograms, signed errors and categories."""

import random

import numpy as np
import pytest
from smmd_bench.reports.error_histogram import EDGES, ErrorHistogram, select_common_errors
from smmd_bench.reports.scale_errors import ScaleErrors, count_categories
from smmd_bench.reports.signed_errors import SignedErrors

from tests.changed_runs import without
from tests.runs import planted_run

FIVE = ["0", "10", "25", "7", "40"]


def test_the_numbers_are_those_of_a_plain_loop(tmp_path):
    """Each seed has a subset of its own."""
    rng, seeds, losses = random.Random(7), (0, 1, 2), ("ce", "gce", "ntl", "smmd")
    answers = [str(rng.randint(-50, 50)) for _ in range(40)]
    texts = {
        loss: {
            seed: [
                "none" if rng.random() < share else str(int(answer) + rng.randint(0, 3))
                for answer in answers
            ]
            for seed in seeds
        }
        for loss, share in zip(losses, (0.05, 0.45, 0.1, 0), strict=True)
    }
    run = planted_run(tmp_path, answers, texts, seeds=seeds)
    run = without(run, tmp_path, loss="ntl", seed=1)
    common = select_common_errors(run)
    assert [*common["pair"].unique()] == [*losses[1:]]
    for loss, own in common.groupby("pair", observed=True):
        expected = {"ce": [], loss: []}
        for seed in (0, 2) if loss == "ntl" else seeds:
            for answer, a, b in zip(answers, texts["ce"][seed], texts[loss][seed], strict=True):
                if "none" not in (a, b):
                    expected["ce"].append((seed, abs(int(a) - int(answer))))
                    expected[loss].append((seed, abs(int(b) - int(answer))))
        for name, rows in expected.items():
            found = own[own["loss"] == name]
            assert list(zip(found["seed"], found["error"], strict=True)) == rows


def histogram(path, answers, predictions, **names):
    return ErrorHistogram().build(planted_run(path, answers, predictions, **names))


def test_planted_errors_fall_in_known_bins(tmp_path):
    answers = ["0", "10", "20", "30", "40", "50"]
    ce = ["0", "11", "19", "130", "none", str(10**7)]
    data = histogram(tmp_path, answers, {"ce": ce, "smmd": answers}).data
    ce = data[(data["loss"] == "ce") & (data["count"] > 0)]
    # 0; 1 and 1 (log10(2) = 0.30); 100 (2.004); 10^7; the unparsable one is in no bin
    assert list(zip(ce["low"], ce["count"], strict=True)) == [(0, 1), (0.25, 2), (2, 1), (6, 1)]
    assert set(data["n"]) == {5}
    assert ce["share"].tolist() == pytest.approx([20, 40, 20, 20])
    smmd = data[data["loss"] == "smmd"]
    assert smmd["count"].tolist() == [5] + [0] * (len(EDGES) - 1)


def test_both_p90_are_those_of_numpy_on_the_subset_of_the_pair(runs):
    table = ErrorHistogram().build(runs("word problems")).table.set_index("Loss")
    completions = runs("word problems").completions
    scores = completions.pivot(index="uid", columns="loss", values="error")
    for loss, label in (("ntl", "NTL"), ("smmd", "SMMD")):
        errors = scores[["ce", loss]].dropna()
        assert table.loc[label, "n"] == str(len(errors))
        for name, of in ((loss, "p90 of the error"), ("ce", "CE: p90")):
            value, low, _ = table.loc[label, of].replace("[", "").split()
            assert value == f"{np.quantile(errors[name], 0.9):.1f}"
            assert float(low[:-1]) <= float(value)
        exact = [table.loc[label, of] for of in ("Error 0 (%)", "CE: error 0 (%)")]
        assert exact == [f"{100 * (errors[name] == 0).mean():.1f}" for name in (loss, "ce")]
    assert table.loc["NTL", "n"] != table.loc["SMMD", "n"]


def signed(path, answers, predictions, **names):
    return SignedErrors().build(planted_run(path, answers, predictions, **names))


def bins(data, loss, digit):
    """{(low, high): count} of the bins that hold an answer."""
    found = data[(data["loss"] == loss) & (data["digit"] == digit) & (data["count"] > 0)]
    ends = zip(found["low"], found["high"], strict=True)
    return dict(zip(ends, found["count"], strict=True))


def test_planted_errors_fall_in_known_bins_of_their_digit(tmp_path):
    answers = ["0", "10", "20", "25", "-35", "7"]
    ce = ["0", "11", "-20", "28", "-32", "none"]
    data = signed(tmp_path, answers, {"ce": ce, "smmd": answers}).data
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
    data = signed(tmp_path, ["4"] * len(ENDS), {"ce": answers, "smmd": ["4"] * len(ENDS)}).data
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
    data = count_categories(run)
    ce = data[data["loss"] == "ce"].set_index("category")
    assert {name: n for name, n in ce["count"].items() if n} == COUNTS
    assert ce.loc["near_miss", "share"] == pytest.approx(20)
    smmd = data[data["loss"] == "smmd"].set_index("category")["count"]
    assert {name: n for name, n in smmd.items() if n} == {"exact": 15, "n": 15}
    table = ScaleErrors().build(run).table
    powers = [f"of these k = {k}" for k in ("−3", "−1", "+1", "+2", "+3")]
    assert [c for c in table["Category"] if c.startswith("of these")] == powers


def test_counts_are_means_over_seeds(tmp_path):
    run = planted_run(tmp_path, ANSWERS, {"smmd": {0: PLANTED, 1: ANSWERS}}, seeds=(0, 1))
    table = ScaleErrors().build(run).table.set_index("Category")
    assert table.loc["Exact", "SMMD"] == "8.5 (56.67)"
    assert table.loc["Total", "SMMD"] == "15.0"
