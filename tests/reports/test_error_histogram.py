import numpy as np
import pytest
from smmd_bench.reports.error_histogram import EDGES, ErrorHistogram, axis_end

from tests.changed_runs import without
from tests.reports.golden import words
from tests.runs import planted_run


@pytest.fixture(scope="module")
def artefact(runs):
    return ErrorHistogram().build(runs("word problems"))


def built(path, answers, predictions, **names):
    return ErrorHistogram().build(planted_run(path, answers, predictions, **names))


def test_planted_errors_fall_in_known_bins(tmp_path):
    answers = ["0", "10", "20", "30", "40", "50"]
    ce = ["0", "11", "19", "130", "none", str(10**7)]
    data = built(tmp_path, answers, {"ce": ce, "smmd": answers}).data
    ce = data[(data["loss"] == "ce") & (data["count"] > 0)]
    # 0; 1 and 1 (log10(2) = 0.30); 100 (2.004); 10^7; the unparsable one is in no bin
    assert list(zip(ce["low"], ce["count"], strict=True)) == [(0, 1), (0.25, 2), (2, 1), (6, 1)]
    assert set(data["n"]) == {5}
    assert ce["share"].tolist() == pytest.approx([20, 40, 20, 20])
    smmd = data[data["loss"] == "smmd"]
    assert smmd["count"].tolist() == [5] + [0] * (len(EDGES) - 1)


def test_errors_of_a_million_are_named_as_outside(tmp_path):
    artefact = built(tmp_path, ["1", "2"], {"ce": ["1", str(10**7)], "smmd": ["1", "9" * 400]})
    assert (
        "Outside, with errors of about a million and more: SMMD 1 of 2; CE beside SMMD 1 of 2."
    ) in words(artefact)


def test_both_p90_are_those_of_numpy_on_the_subset_of_the_pair(artefact, runs):
    table = artefact.table.set_index("Loss")
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


def test_over_seeds_p90_is_a_mean_with_its_deviation(tmp_path):
    answers = [str(at) for at in range(11)]
    off = [str(at + 10) for at in range(11)]
    losses = {"ce": {0: answers, 1: off}, "smmd": {0: off, 1: off}}
    (row,) = built(tmp_path, answers, losses, seeds=(0, 1)).table.to_dict("records")
    assert (row["n"], row["Seeds"]) == ("22", "2")
    assert (row["CE: p90"], row["p90 of the error"]) == ("5.00 ± 7.07", "10.0 ± 0.0")
    assert (row["CE: error 0 (%)"], row["Error 0 (%)"]) == ("50.0", "0.0")


def test_a_variant_of_one_seed_and_a_loss_with_gaps_leave_the_other_rows_as_they_are(tmp_path):
    answers = [str(at) for at in range(20)]
    losses = {"ce": answers, "smmd": ["5", *answers[1:]]}
    alone = built(tmp_path / "a", answers, losses, seeds=(0, 1, 2)).table.set_index("Loss")
    gaps, variant = ["none"] * 15 + answers[15:], "smmd[sigma=1]"
    more, path = {**losses, "gce": gaps, variant: answers}, tmp_path / "b"
    run = planted_run(path, answers, more, seeds=(0, 1, 2))
    for seed in (1, 2):
        run = without(run, path, loss=variant, seed=seed)
    table = ErrorHistogram().build(run).table.set_index("Loss")
    assert table.loc["SMMD"].equals(alone.loc["SMMD"])
    assert table[["n", "Seeds"]].T.to_dict("list") == {
        "SMMD": ["60", "3"], "GCE": ["15", "3"], "SMMD[sigma=1]": ["20", "1"]
    }  # fmt: skip


def test_the_data_have_both_histograms_of_every_pair(tmp_path):
    losses = {"ce": ["1", "2", "4"], "ntl": ["none", "2", "3"], "smmd": ["1", "2", "3"]}
    data = built(tmp_path, ["1", "2", "3"], losses).data
    exact = data[data["low"] == 0].set_index(["pair", "loss"])[["n", "count"]]
    assert exact.T.to_dict("list") == {
        ("ntl", "ce"): [2, 1], ("ntl", "ntl"): [2, 2],
        ("smmd", "ce"): [3, 2], ("smmd", "smmd"): [3, 3],
    }  # fmt: skip
    assert len(data) == 4 * len(EDGES)


def test_the_papers_p90_is_named_on_gsm8k_alone(artefact, run):
    assert "Appendix C.7 of the paper on gsm8k is 168.40 with CE and 150.00 with SMMD" in (
        words(artefact)
    )
    table = artefact.table.set_index("Loss")
    assert table["Paper p90 (CE)"].to_dict() == {"NTL": "–", "SMMD": "150.00 (168.40)"}
    other = ErrorHistogram().build(run)
    assert "168.40" not in words(other)
    assert not [name for name in other.table if name.startswith("Paper")]


def test_caption_and_panels_say_the_size_of_each_subset(artefact):
    sizes = artefact.data.drop_duplicates("pair").set_index("pair")["n"]
    assert max(sizes) < 150
    assert f"Its share: NTL {sizes['ntl']} of 150; SMMD {sizes['smmd']} of 150." in words(artefact)
    p90 = artefact.table.set_index("Loss")[["p90 of the error", "CE: p90"]]
    for axis, name in zip(artefact.figure.axes, ("NTL", "SMMD"), strict=True):
        own, ce = (text.split()[0] for text in p90.loc[name])
        assert axis.get_title() == (
            f"{name} over CE\nn = {sizes[name.lower()]}\np90 {own} (CE {ce})"
        )
        assert not axis.texts


def test_every_loss_is_drawn_over_cross_entropy_in_a_line_style_of_its_own(artefact):
    labels = [axis.get_legend_handles_labels() for axis in artefact.figure.axes]
    assert [names for _, names in labels] == [["CE", "NTL"], ["CE", "SMMD"]]
    styles = {(line.get_linestyle(), line.get_marker()) for lines, _ in labels for line in lines}
    assert len(styles) == 3


def test_more_losses_and_groups_than_can_be_drawn_are_named(tmp_path):
    losses = ["ce", *(f"smmd[sigma={at}]" for at in range(5, 11)), "smmd"]
    answers, models = ["1", "2", "3"] * 10, [f"m{at}" for at in range(5)]
    artefact = built(tmp_path, answers, dict.fromkeys(losses, answers), models=models)
    assert len(artefact.figure.axes) == 4 * 5
    assert words(artefact).endswith(
        "Drawn are 4 of 5 combinations of model and task and at most 5 losses over the reference "
        "(SMMD[sigma=5], SMMD[sigma=6], SMMD[sigma=7], SMMD[sigma=8], SMMD); the CSV of the figure "
        "has all."
    )
    assert artefact.data["loss"].nunique() == 8


def test_the_axis_ends_where_all_but_a_few_answers_lie(tmp_path):
    answers = ["1"] * 300
    near = ["2"] * 100 + ["11"] * 199
    for last, end in (("11", 1.25), (str(10**5), 1.25)):
        ce = [*near, last]
        artefact = built(tmp_path / last, answers, {"ce": ce, "smmd": answers})
        assert axis_end(artefact.data) == artefact.figure.axes[0].get_xlim()[1] == end
    far = [*near[:290], *[str(10**5)] * 10]
    artefact = built(tmp_path / "far", answers, {"ce": far, "smmd": answers})
    assert artefact.figure.axes[0].get_xlim() == (0, 5.25)


@pytest.mark.parametrize(("n", "drawn"), [(29, False), (30, True)])
def test_a_subset_of_fewer_than_30_examples_has_no_panel_and_is_named(tmp_path, n, drawn):
    answers = ["1"] * n
    seeds = (0, 1)  # which do not add to the examples
    artefact = built(tmp_path, answers, {"ce": answers, "smmd": answers}, seeds=seeds)
    assert (artefact.figure is not None) == drawn
    named = "Not drawn, with fewer than 30 test examples: SMMD." in words(artefact)
    assert named == (not drawn)


def test_a_subset_without_an_example_has_a_row_and_no_panel(tmp_path):
    artefact = built(tmp_path, ["1", "2"], {"ce": ["none", "2"], "smmd": ["1", "none"]})
    (row,) = artefact.table.to_dict("records")
    assert (row["n"], row["Error 0 (%)"], row["p90 of the error"]) == ("0", "–", "–")
    assert set(artefact.data["count"]) == {0}
    assert artefact.figure is None
