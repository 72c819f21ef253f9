import numpy as np
import pytest
from smmd_bench.reports.error_histogram import EDGES, ErrorHistogram

import smmd_bench as sb
from smmd_bench.results.files import write_json
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
        "Outside, with errors of about a million and more: builtin/tiny, gsm8k, CE: 1;" in caption
    )
    assert "builtin/tiny, gsm8k, SMMD: 1." in caption


def test_p90_is_that_of_numpy_on_the_common_valid_subset(word_run):
    table = ErrorHistogram().build(word_run).table.set_index("Loss")
    scores = word_run.completions.pivot(index="uid", columns="loss", values="error")
    errors = scores[["ce", "ntl", "smmd"]].dropna()
    for loss, label in (("ce", "CE"), ("smmd", "SMMD")):
        value, low, _ = table.loc[label, "p90 of the error"].replace("[", "").split()
        assert value == f"{np.quantile(errors[loss], 0.9):.2f}"
        assert float(low[:-1]) <= float(value)
    assert set(table["n"]) == {str(len(errors))}


def test_over_seeds_p90_is_a_mean_with_its_deviation(tmp_path):
    answers = [str(at) for at in range(11)]
    off = [str(at + 10) for at in range(11)]
    run = planted(
        tmp_path, answers, {"ce": {0: answers, 1: off}, "smmd": {0: off, 1: off}}, seeds=(0, 1)
    )
    table = ErrorHistogram().build(run).table.set_index("Loss")
    assert table["p90 of the error"].to_dict() == {"CE": "5.00 ± 7.07", "SMMD": "10.00 ± 0.00"}
    assert table["Error 0 (%)"].to_dict() == {"CE": "50.0", "SMMD": "0.0"}


def test_the_table_of_a_model_of_the_paper(word_run):
    assert_golden("error_histogram_paper_model", ErrorHistogram().build(word_run))


def test_the_papers_p90_is_named_on_gsm8k_alone(word_run, run_folder):
    assert (
        "The p90 of Appendix C.7 of the paper on gsm8k is 168.40 with CE and 150.00 with SMMD"
        in ErrorHistogram().build(word_run).caption
    )
    other = ErrorHistogram().build(sb.read_run(run_folder))
    assert "168.40" not in other.caption
    assert "Paper p90" not in other.table


def test_the_caption_says_the_size_of_the_subset(word_run):
    n = ErrorHistogram().build(word_run).data["n"].iloc[0]
    assert n < 150
    assert f"(n Qwen2.5-1.5B, gsm8k: {n} of 150)" in ErrorHistogram().build(word_run).caption


def test_every_loss_is_drawn_over_cross_entropy_in_a_line_style_of_its_own(word_run):
    figure = ErrorHistogram().build(word_run).figure
    labels = [axis.get_legend_handles_labels() for axis in figure.axes]
    assert [names for _, names in labels] == [["CE", "NTL"], ["CE", "SMMD"]]
    styles = {(line.get_linestyle(), line.get_marker()) for lines, _ in labels for line in lines}
    assert len(styles) == 3


def test_more_losses_and_groups_than_can_be_drawn_are_named(tmp_path):
    losses = ["ce", *(f"smmd[sigma={at}]" for at in range(5, 10)), "smmd"]
    answers = ["1", "2", "3"]
    run = planted(
        tmp_path, answers, dict.fromkeys(losses, answers), models=[f"m{at}" for at in range(5)]
    )
    artefact = ErrorHistogram().build(run)
    assert len(artefact.figure.axes) == 4 * 4
    assert artefact.caption.endswith(
        "Drawn are 4 of 5 pairs of model and task and SMMD[sigma=5], SMMD[sigma=6], "
        "SMMD[sigma=7], SMMD beside CE; the CSV has all."
    )
    assert artefact.data["loss"].nunique() == 7


def test_a_subset_without_an_example_is_shown_as_empty(tmp_path):
    run = planted(tmp_path, ["1", "2"], {"ce": ["none", "2"], "smmd": ["1", "none"]})
    artefact = ErrorHistogram().build(run)
    assert artefact.table["p90 of the error"].tolist() == ["–", "–"]
    assert set(artefact.data["count"]) == {0}
    artefact.figure.canvas.draw()


def test_a_run_without_two_losses_is_skipped(tmp_path):
    run = planted(tmp_path / "one", ["1"], {"ce": ["1"]})
    assert "two trained losses" in ErrorHistogram().skip(run)
    write_json(tmp_path / "empty" / "manifest.json", {"name": "empty", "experiment": {}})
    assert ErrorHistogram().skip(sb.read_run(tmp_path / "empty")) == "no cell has results"
