"""The error analyses: common-valid subsets, histograms, signed errors and categories."""

import random

import numpy as np
import pytest
from smmd_bench.reports._cells import select_losses
from smmd_bench.reports._errors import common_errors, why_none
from smmd_bench.reports.error_histogram import EDGES, ErrorHistogram, axis_end
from smmd_bench.reports.scale_errors import ScaleErrors, category_counts
from smmd_bench.reports.signed_errors import SignedErrors

from smmd_bench.plugin_system.registry import load
from tests.changed_runs import with_manifest, without
from tests.runs import planted_run

FIVE = ["0", "10", "25", "7", "40"]


def errors_by_loss(run):
    return {common.loss: common for common in common_errors(run)}


def test_a_pair_is_compared_on_the_seeds_that_both_have(tmp_path):
    losses = ["ce", "ntl", "smmd", "smmd[sigma=1]"]
    run = planted_run(tmp_path, FIVE, dict.fromkeys(losses, FIVE), seeds=(0, 1, 2))
    for loss, seed in (("smmd[sigma=1]", 0), ("smmd[sigma=1]", 2), ("ntl", 1)):
        run = without(run, tmp_path, loss=loss, seed=seed)
    common = errors_by_loss(run)
    assert {loss: (each.seeds, each.n) for loss, each in common.items()} == {
        "ntl": ((0, 2), 10), "smmd": ((0, 1, 2), 15), "smmd[sigma=1]": ((1,), 5),
    }  # fmt: skip
    assert set(common["smmd[sigma=1]"].of("ce")["seed"]) == {1}


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
    for loss, common in errors_by_loss(run).items():
        expected = {"ce": [], loss: []}
        for seed in (0, 2) if loss == "ntl" else seeds:
            for answer, a, b in zip(answers, texts["ce"][seed], texts[loss][seed], strict=True):
                if "none" not in (a, b):
                    expected["ce"].append((seed, abs(int(a) - int(answer))))
                    expected[loss].append((seed, abs(int(b) - int(answer))))
        assert common.n == len(expected[loss])
        for name, rows in expected.items():
            found = common.of(name)
            assert list(zip(found["seed"], found["error"], strict=True)) == rows


def test_without_cross_entropy_or_with_completions_made_elsewhere_the_first_is_the_reference(
    tmp_path,
):
    run = planted_run(tmp_path / "a", FIVE, {"ntl": FIVE, "smmd": FIVE})
    assert common_errors(run)[0].reference == "ntl"
    run = planted_run(tmp_path / "b", FIVE, {"smmd": FIVE, "ce": FIVE})
    assert common_errors(run)[0].reference == "ce"
    elsewhere = with_manifest(run, tmp_path / "b", predictions={"losses": ["smmd", "ce"]})
    (pair,) = common_errors(elsewhere)
    assert pair.reference == elsewhere.cells["loss"].cat.categories[0]


@pytest.mark.parametrize("answers", [["none"] * 5, [""] * 5])
def test_a_loss_without_one_number_is_left_out(tmp_path, answers):
    run = planted_run(tmp_path / "a", FIVE, {"ce": FIVE, "gce": answers, "smmd": FIVE})
    assert {loss: each.n for loss, each in errors_by_loss(run).items()} == {"smmd": 5}
    run = planted_run(tmp_path / "b", FIVE, {"ce": FIVE, "smmd": answers})
    assert "numbers of two trained losses" in why_none(run)


@pytest.mark.parametrize(
    ("losses", "most", "drawn"),
    [
        (["ntl", "smmd"], 3, ["ntl", "smmd"]),
        (["ntl", "smmd[sigma=1]", "smmd", "smmd[sigma=2]", "gce"], 3, ["ntl", "smmd", "gce"]),
        (["a", "b", "c", "d", "smmd"], 3, ["a", "b", "smmd"]),
        (["smmd[sigma=1]", "smmd[sigma=2]", "smmd[sigma=3]", "ntl"], 3,
         ["smmd[sigma=1]", "smmd[sigma=2]", "ntl"]),
        (["ce", "ntl[lambda=1]", "ntl", "smmd"], 2, ["ce", "smmd"]),
    ],
)  # fmt: skip
def test_smmd_and_the_losses_without_parameters_are_drawn_first(losses, most, drawn):
    assert select_losses(losses, most) == drawn


@pytest.mark.parametrize("name", ["scale_errors", "error_histogram", "signed_errors"])
def test_summaries_and_times_are_no_numbers(name, runs):
    tasks = set(load("reports", name).build(runs("all tasks")).data["task"].unique())
    assert tasks == {"arithmetic", "gsm8k", "chartqa", "halving"}


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


def test_the_axis_ends_where_all_but_a_few_answers_lie(tmp_path):
    answers = ["1"] * 300
    near = ["2"] * 100 + ["11"] * 199
    for last, end in (("11", 1.25), (str(10**5), 1.25)):
        ce = [*near, last]
        artefact = histogram(tmp_path / last, answers, {"ce": ce, "smmd": answers})
        assert axis_end(artefact.data) == artefact.figure.axes[0].get_xlim()[1] == end
    far = [*near[:290], *[str(10**5)] * 10]
    artefact = histogram(tmp_path / "far", answers, {"ce": far, "smmd": answers})
    assert artefact.figure.axes[0].get_xlim() == (0, 5.25)


@pytest.mark.parametrize(("n", "drawn"), [(29, False), (30, True)])
def test_a_subset_of_fewer_than_30_examples_has_no_panel(tmp_path, n, drawn):
    answers = ["1"] * n
    seeds = (0, 1)  # which do not add to the examples
    artefact = histogram(tmp_path, answers, {"ce": answers, "smmd": answers}, seeds=seeds)
    assert (artefact.figure is not None) == drawn


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


def test_the_table_has_the_exact_answers_of_a_pair_by_digit(tmp_path):
    losses = {"ce": ["5", "5", "20"], "smmd": ["5", "15", "2"]}
    table = signed(tmp_path, ["5", "15", "20"], losses).table.set_index("Last digit")
    columns = ["Exact (%)", "CE: exact (%)"]
    assert [text.split()[0] for text in table.loc["5", columns]] == ["100.0", "50.0"]
    assert [text.split()[0] for text in table.loc["0", columns]] == ["0.0", "100.0"]
    assert list(table.loc["1", ["n", *columns]]) == ["0", "–", "–"]


def test_a_row_of_panels_a_digit_of_enough_examples_and_a_column_a_loss(tmp_path):
    answers = ["0"] * 30 + ["3"] * 29 + ["5"] * 31
    ntl = ["none", *answers[1:]]
    off = ["4", *answers[1:]]
    losses = {"ce": off, "ntl": ntl, "smmd": answers}
    artefact = signed(tmp_path, answers, losses, seeds=(0, 1))
    axes = artefact.figure.axes
    assert [axis.get_ylabel() for axis in axes] == ["last digit 0", "", "last digit 5", ""]
    assert [axis.get_title() for axis in axes[:2]] == [
        "NTL over CE\nn = 178, 2 seeds", "SMMD over CE\nn = 180, 2 seeds"
    ]  # fmt: skip
    shown = [[text.get_text() for text in axis.texts] for axis in axes]
    assert shown == [[], ["n = 60"], ["n = 62"], ["n = 62"]]


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
    data = category_counts(run)
    ce = data[data["loss"] == "ce"].set_index("category")
    assert {name: n for name, n in ce["count"].items() if n} == COUNTS
    assert ce.loc["near_miss", "share"] == pytest.approx(20)
    smmd = data[data["loss"] == "smmd"].set_index("category")["count"]
    assert {name: n for name, n in smmd.items() if n} == {"exact": 15, "n": 15}
    table = ScaleErrors().build(run).table
    assert [c for c in table["Category"] if c.startswith("k")] == [
        "k = −3", "k = −1", "k = +1", "k = +2", "k = +3",
    ]  # fmt: skip


def test_counts_are_means_over_seeds(tmp_path):
    run = planted_run(tmp_path, ANSWERS, {"smmd": {0: PLANTED, 1: ANSWERS}}, seeds=(0, 1))
    table = ScaleErrors().build(run).table.set_index("Category")
    assert table.loc["Exact", "SMMD"] == "8.5 (56.67)"
    assert table.loc["Total", "SMMD"] == "15.0"
