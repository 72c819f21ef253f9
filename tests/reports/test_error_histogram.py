import numpy as np
import pytest
from smmd_bench.reports.error_histogram import EDGES, ErrorHistogram

import smmd_bench as sb
from smmd_bench.storage.files import write_json
from tests.reports.golden import assert_golden
from tests.runs import Planted, write_run


def planted(path, answers, predictions, **names):
    write_run(
        path, planted=Planted(answers, predictions), steps=5, resamples=20,
        **{"seeds": (0,), "tasks": ("gsm8k",), **names},
    )  # fmt: skip
    return sb.read_run(path)


@pytest.fixture(scope="module")
def word_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "words"
    write_run(
        folder, models=("Qwen/Qwen2.5-1.5B",), tasks=("gsm8k",), losses=("ce", "ntl", "smmd"),
        seeds=(0,), n=150, steps=5, resamples=20,
    )  # fmt: skip
    return sb.read_run(folder)


def test_planted_errors_fall_in_known_bins(tmp_path):
    answers = ["0", "10", "20", "30", "40", "50"]
    run = planted(
        tmp_path, answers, {"ce": ["0", "11", "19", "130", "none", str(10**7)], "smmd": answers}
    )
    data = ErrorHistogram().build(run).data
    ce = data[(data["loss"] == "ce") & (data["count"] > 0)]
    # 0; 1 and 1 (log10(2) = 0.30); 100 (2.004); 10^7; the unparsable one is in no bin
    assert list(zip(ce["low"], ce["count"], strict=True)) == [(0, 1), (0.25, 2), (2, 1), (6, 1)]
    assert set(data["n"]) == {5}
    assert ce["share"].tolist() == pytest.approx([20, 40, 20, 20])
    smmd = data[data["loss"] == "smmd"]
    assert smmd["count"].tolist() == [5] + [0] * (len(EDGES) - 1)


def test_errors_of_a_million_are_named_as_outside(tmp_path):
    run = planted(tmp_path, ["1", "2"], {"ce": ["1", str(10**7)], "smmd": ["1", "9" * 400]})
    caption = ErrorHistogram().build(run).caption
    assert (
        "Outside, with errors of about a million and more: SMMD 1 of 2; CE beside SMMD 1 of 2."
    ) in caption


def test_both_p90_are_those_of_numpy_on_the_subset_of_the_pair(word_run):
    table = ErrorHistogram().build(word_run).table.set_index("Loss")
    scores = word_run.completions.pivot(index="uid", columns="loss", values="error")
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
    run = planted(
        tmp_path, answers, {"ce": {0: answers, 1: off}, "smmd": {0: off, 1: off}}, seeds=(0, 1)
    )
    (row,) = ErrorHistogram().build(run).table.to_dict("records")
    assert (row["n"], row["Seeds"]) == ("22", "2")
    assert (row["CE: p90"], row["p90 of the error"]) == ("5.00 ± 7.07", "10.0 ± 0.0")
    assert (row["CE: error 0 (%)"], row["Error 0 (%)"]) == ("50.0", "0.0")


def test_a_variant_of_one_seed_and_a_loss_with_gaps_leave_the_other_rows_as_they_are(tmp_path):
    answers = [str(at) for at in range(20)]
    losses = {"ce": answers, "smmd": ["5", *answers[1:]]}
    gaps, variant = ["none"] * 15 + answers[15:], "smmd[sigma=1]"
    planted(tmp_path / "a", answers, losses, seeds=(0, 1, 2))
    planted(tmp_path / "b", answers, {**losses, "gce": gaps, variant: answers}, seeds=(0, 1, 2))
    cells = sb.read_run(tmp_path / "b").cells
    for address in cells.loc[(cells["loss"] == variant) & (cells["seed"] > 0), "address"]:
        (tmp_path / "b" / "cells" / address / "metrics.json").unlink()
    alone, table = (
        ErrorHistogram().build(sb.read_run(tmp_path / name)).table.set_index("Loss")
        for name in "ab"
    )
    assert table.loc["SMMD"].equals(alone.loc["SMMD"])
    assert table[["n", "Seeds"]].T.to_dict("list") == {
        "SMMD": ["60", "3"], "GCE": ["15", "3"], "SMMD[sigma=1]": ["20", "1"]
    }  # fmt: skip


def test_the_data_have_both_histograms_of_every_pair(tmp_path):
    answers = ["1", "2", "3"]
    losses = {"ce": ["1", "2", "4"], "ntl": ["none", "2", "3"], "smmd": answers}
    data = ErrorHistogram().build(planted(tmp_path, answers, losses)).data
    exact = data[data["low"] == 0].set_index(["pair", "loss"])[["n", "count"]]
    assert exact.T.to_dict("list") == {
        ("ntl", "ce"): [2, 1], ("ntl", "ntl"): [2, 2],
        ("smmd", "ce"): [3, 2], ("smmd", "smmd"): [3, 3],
    }  # fmt: skip
    assert len(data) == 4 * len(EDGES)


def test_the_table_of_a_model_of_the_paper(word_run):
    assert_golden("error_histogram_paper_model", ErrorHistogram().build(word_run))


def test_the_papers_p90_is_named_on_gsm8k_alone(word_run, run_folder):
    assert (
        "The p90 of Appendix C.7 of the paper on gsm8k is 168.40 with CE and 150.00 with SMMD"
        in ErrorHistogram().build(word_run).caption
    )
    other = ErrorHistogram().build(sb.read_run(run_folder))
    assert "168.40" not in other.caption
    assert not [name for name in other.table if name.startswith("Paper")]


def test_the_papers_p90_of_both_stand_in_the_row_of_smmd(word_run):
    table = ErrorHistogram().build(word_run).table.set_index("Loss")
    assert table["Paper p90 (CE)"].to_dict() == {"NTL": "–", "SMMD": "150.00 (168.40)"}


def test_caption_and_panels_say_the_size_of_each_subset(word_run):
    artefact = ErrorHistogram().build(word_run)
    sizes = artefact.data.drop_duplicates("pair").set_index("pair")["n"]
    assert max(sizes) < 150
    assert f"Its share: NTL {sizes['ntl']} of 150; SMMD {sizes['smmd']} of 150." in artefact.caption
    titles = [axis.get_title() for axis in artefact.figure.axes]
    assert titles == [f"{name} over CE\nn = {sizes[name.lower()]}" for name in ("NTL", "SMMD")]


def test_every_loss_is_drawn_over_cross_entropy_in_a_line_style_of_its_own(word_run):
    figure = ErrorHistogram().build(word_run).figure
    labels = [axis.get_legend_handles_labels() for axis in figure.axes]
    assert [names for _, names in labels] == [["CE", "NTL"], ["CE", "SMMD"]]
    styles = {(line.get_linestyle(), line.get_marker()) for lines, _ in labels for line in lines}
    assert len(styles) == 3


def test_more_losses_and_groups_than_can_be_drawn_are_named(tmp_path):
    losses = ["ce", *(f"smmd[sigma={at}]" for at in range(5, 11)), "smmd"]
    answers = ["1", "2", "3"]
    run = planted(
        tmp_path, answers, dict.fromkeys(losses, answers), models=[f"m{at}" for at in range(5)]
    )
    artefact = ErrorHistogram().build(run)
    assert len(artefact.figure.axes) == 4 * 5
    assert artefact.caption.endswith(
        "Drawn are 4 of 5 combinations of model and task and at most 5 losses over the reference "
        "(SMMD[sigma=5], SMMD[sigma=6], SMMD[sigma=7], SMMD[sigma=8], SMMD); the CSV of the figure "
        "has all."
    )
    assert artefact.data["loss"].nunique() == 8


def test_a_subset_without_an_example_is_shown_as_empty(tmp_path):
    run = planted(tmp_path, ["1", "2"], {"ce": ["none", "2"], "smmd": ["1", "none"]})
    artefact = ErrorHistogram().build(run)
    (row,) = artefact.table.to_dict("records")
    assert (row["n"], row["Error 0 (%)"], row["p90 of the error"]) == ("0", "–", "–")
    assert set(artefact.data["count"]) == {0}
    artefact.figure.canvas.draw()


def test_a_run_without_two_losses_is_skipped(tmp_path):
    run = planted(tmp_path / "one", ["1"], {"ce": ["1"]})
    assert "two trained losses" in ErrorHistogram().skip(run)
    write_json(tmp_path / "empty" / "manifest.json", {"name": "empty", "experiment": {}})
    assert ErrorHistogram().skip(sb.read_run(tmp_path / "empty")) == "no cell has results"
