import re
import shutil
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from smmd_bench.reports.digit_distribution import DigitDistribution, first_digit_distributions
from smmd_bench.reports.digit_probe import DigitProbe

import smmd_bench as sb
from smmd_bench.conformance import generated_run
from smmd_bench.errors import UserError
from smmd_bench.plugin_system import registry
from smmd_bench.publishing.style import figure_style
from smmd_bench.results.frames import RunFrames
from tests.runs import rewrite, write_run

DIGITS = [f"p{digit}" for digit in range(10)]


@pytest.fixture(scope="module")
def run(run_folder):
    return sb.read_run(run_folder)


def without(run_folder: Path, tmp_path: Path, name: str) -> Path:
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    for file in folder.glob(f"cells/*/{name}"):
        file.unlink()
    return folder


def test_digit_distributions_are_means_over_the_first_digit(run):
    data = first_digit_distributions(run)
    probes = run.probes
    first = probes[
        (probes["answer_digit"] == 0) & (probes["target_value"] == 5) & (probes["loss"] == "ce")
    ]
    (row,) = data[(data["digit"] == 5) & (data["loss"] == "ce")].to_dict("records")
    assert [row[name] for name in DIGITS] == pytest.approx(first[DIGITS].mean().tolist())
    assert row["p5_deviation"] == pytest.approx(first["p5"].std(ddof=0))
    assert (row["n"], row["seeds"]) == (len(first) // 2, 2)
    assert data[DIGITS].sum(axis=1).to_numpy() == pytest.approx(1)


def first_digits(texts: Iterable[str]) -> dict[int, int]:
    """How many of the texts have each digit from 1 to 9 for their first one."""
    found = Counter(int(re.search("[0-9]", text)[0]) for text in texts)
    return {digit: found[digit] for digit in range(1, 10) if found[digit]}


def targets_of(run: RunFrames, task: str) -> list[str]:
    completions = run.completions
    one = completions[(completions["task"] == task) & (completions["loss"] == "ce")]
    return [*one.drop_duplicates("uid")["target"]]


@pytest.mark.parametrize("made", ["conformance", "synthetic"])
def test_behind_a_rationale_n_counts_the_first_digits_of_the_answers(made, tmp_path):
    if made == "conformance":
        cells = generated_run.matrix(
            ["builtin/tiny"], ["gsm8k", "arithmetic"], ("ce", "smmd"), (0,)
        )
        generated_run.write_run(tmp_path, cells, n=80)
    else:
        tasks = ("gsm8k", "arithmetic")
        write_run(tmp_path, tasks=tasks, losses=("ce", "smmd"), seeds=(0,), n=80, resamples=20)
    run = sb.read_run(tmp_path)
    artefact = DigitDistribution().build(run)
    for task in ("gsm8k", "arithmetic"):
        targets = targets_of(run, task)
        answers = first_digits(target.rpartition("####")[2] for target in targets)
        for loss in ("base", "ce", "smmd"):
            data = artefact.data[(artefact.data["task"] == task) & (artefact.data["loss"] == loss)]
            assert dict(zip(data["digit"], data["n"], strict=True)) == answers
        if task == "gsm8k":
            assert answers != first_digits(targets)  # a rationale's first number is another
    said = " On gsm8k a rationale stands before the answer: its digits are not shown, and the model"
    assert said in artefact.caption


def test_where_no_rationale_stands_before_an_answer_none_is_named(run):
    assert "rationale" not in DigitDistribution().build(run).caption


def test_answers_that_begin_with_no_numeric_token_have_no_digit_distribution(run_folder, tmp_path):
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    for file in folder.glob("cells/*/probes.parquet"):
        probes = pd.read_parquet(file)
        rewrite(file, probes[probes["answer_digit"] != 0])
    reason = DigitDistribution().skip(sb.read_run(folder))
    assert reason == "no answer begins with a numeric token other than 0"


def test_a_token_of_several_digits_counts_by_its_first(run_folder, tmp_path):
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    for file in folder.glob("cells/*/probes.parquet"):
        probes = pd.read_parquet(file)
        probes["target_value"] = np.where(probes["target_value"] == 7, 731.0, 0.0)
        rewrite(file, probes)
    assert set(first_digit_distributions(sb.read_run(folder))["digit"]) == {7}


def test_a_model_with_tokens_of_several_digits_has_its_reduction_stated(run_folder, tmp_path):
    assert "hold several digits" not in DigitDistribution().build(sb.read_run(run_folder)).caption
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    for file in folder.glob("cells/*/probes.parquet"):
        probes = pd.read_parquet(file)
        probes["vector"] = pd.Series([[0.001] * 1000, *[None] * (len(probes) - 1)], dtype=object)
        rewrite(file, probes)
    caption = DigitDistribution().build(sb.read_run(folder)).caption
    assert "Numeric tokens of builtin/tiny (N = 1,000) hold several digits and are" in caption


def test_of_clocks_the_caption_says_which_hours_begin_with_1(run, tmp_path):
    assert "o'clock" not in DigitDistribution().build(run).caption
    write_run(tmp_path, tasks=("clock_time",), losses=("ce",), seeds=(0,), n=40, resamples=20)
    caption = DigitDistribution().build(sb.read_run(tmp_path)).caption
    assert "10, 11 and 12 o'clock begin with 1." in caption


def test_figure_2_is_the_row_of_clocks_whose_hour_begins_with_5(run, tmp_path):
    assert DigitProbe().skip(run) == "the run has no clock_time cell"
    tasks = ("clock_time", "arithmetic")
    write_run(tmp_path, tasks=tasks, losses=("ce", "smmd"), seeds=(0,), n=80, resamples=20)
    clocks = sb.read_run(tmp_path)
    assert DigitProbe().skip(clocks) is None
    artefact = DigitProbe().build(clocks)
    assert set(artefact.data["task"]) == {"clock_time"}
    assert set(artefact.data["digit"]) == {5}
    every = DigitDistribution().build(clocks).data
    same = every[(every["task"] == "clock_time") & (every["digit"] == 5)]
    assert artefact.data["p5"].tolist() == same["p5"].tolist()


def test_every_true_digit_has_a_row_and_every_loss_a_column(run):
    figure = DigitDistribution().build(run).figure
    assert len(figure.axes) == 9 * 4
    assert [axis.get_title() for axis in figure.axes[:4]] == ["untuned", "CE", "NTL", "SMMD"]


def test_long_labels_stay_above_their_own_panel(tmp_path):
    losses = ("ce", "gce", "ntl", "smmd", "smmd[sigma=1+1.5+2+2.5+3]",
              "smmd[kernel=shuffled,term=mmd]")  # fmt: skip
    write_run(tmp_path, losses=losses, seeds=(0,), n=30, steps=5, resamples=5)
    with figure_style():
        figure = DigitDistribution().build(sb.read_run(tmp_path)).figure
        figure.draw_without_rendering()
    titles = [axis.title.get_window_extent() for axis in figure.axes[:7]]
    assert all(left.x1 < right.x0 for left, right in pairwise(titles))


def test_the_bar_of_the_true_digit_is_hatched(run):
    for axis in DigitDistribution(digit=5).build(run).figure.axes:
        assert [bool(bar.get_hatch()) for bar in axis.patches] == [d == 5 for d in range(10)]


def test_the_table_of_digit_distributions_is_the_height_of_those_bars(run):
    artefact = DigitDistribution(digit=5).build(run)
    heights = [f"{axis.patches[5].get_height():.3f}" for axis in artefact.figure.axes]
    assert artefact.table["Loss"].tolist() == ["n", "untuned", "CE", "NTL", "SMMD"]
    assert artefact.table["p(5)"].tolist() == ["12", *heights]
    assert artefact.table["Seeds"].tolist() == ["–", "1", "2", "2", "2"]


@pytest.mark.parametrize("report", [DigitDistribution(), DigitProbe()])
def test_a_digit_distribution_names_n_seeds_and_what_has_no_result(report, tmp_path):
    write_run(tmp_path, tasks=("clock_time",), losses=("ce", "smmd"), n=60, resamples=20)
    for cell in sb.read_run(tmp_path).cells.itertuples():
        if cell.loss == "smmd":
            for name in ("metrics.json", "probes.parquet"):
                (tmp_path / "cells" / cell.address / name).unlink()
    artefact = report.build(sb.read_run(tmp_path))
    assert "n = 60 test examples; seeds 0, 1; at most" in artefact.caption
    assert artefact.caption.endswith("Without a result: builtin/tiny smmd seeds 0, 1 (pending).")
    assert artefact.table["Loss"].tolist() == ["n", "untuned", "CE"]


def test_blocks_of_few_losses_have_panels_as_wide_as_the_others(tmp_path):
    tasks = ("gsm8k", "arithmetic[operations=1..2]")
    write_run(tmp_path, tasks=tasks, losses=("ce", "smmd"), seeds=(0,), n=30, steps=5, resamples=5)
    for cell in sb.read_run(tmp_path).cells.itertuples():
        if cell.task == "gsm8k" and cell.loss != "base":
            shutil.rmtree(tmp_path / "cells" / cell.address)
    with figure_style():
        figure = DigitDistribution(digit=3).build(sb.read_run(tmp_path)).figure
        figure.draw_without_rendering()
    widths = [axis.get_window_extent().width for axis in figure.axes if axis.axison]
    assert len(widths) == 4
    assert max(widths) < 1.1 * min(widths)


def test_a_digit_out_of_range_is_a_users_error():
    with pytest.raises(UserError, match="digit must be a digit from 1 to 9"):
        registry.load("reports", "digit_distribution[digit=12]")


def test_a_run_without_probes_has_no_digit_distribution(run_folder, tmp_path):
    folder = without(run_folder, tmp_path, "probes.parquet")
    assert DigitDistribution().skip(sb.read_run(folder)) == "no cell has digit probes"
