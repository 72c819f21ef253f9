import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from smmd_bench.reports.digit_distribution import DigitDistribution, first_digit_distributions
from smmd_bench.reports.digit_probe import DigitProbe

import smmd_bench as sb
from smmd_bench.conformance import generated_run
from smmd_bench.publishing.style import figure_style
from tests.changed_runs import changed, without
from tests.reports.golden import words
from tests.runs import quick_run

DIGITS = [f"p{digit}" for digit in range(10)]


@pytest.fixture(scope="module")
def artefact(run):
    return DigitDistribution().build(run)


@pytest.fixture(scope="module")
def clocks(tmp_path_factory):
    tasks = ("clock_time", "arithmetic")
    folder = tmp_path_factory.mktemp("clocks")
    return quick_run(folder, tasks=tasks, losses=("ce", "smmd"), seeds=(0, 1), n=60)


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


def first_digits(texts):
    """How many of the texts have each digit from 1 to 9 for their first one."""
    found = Counter(int(re.search("[0-9]", text)[0]) for text in texts)
    return {digit: found[digit] for digit in range(1, 10) if found[digit]}


def targets_of(run, task):
    completions = run.completions
    one = completions[(completions["task"] == task) & (completions["loss"] == "ce")]
    return [*one.drop_duplicates("uid")["target"]]


@pytest.mark.parametrize("made", ["conformance", "synthetic"])
def test_behind_a_rationale_n_counts_the_first_digits_of_the_answers(made, tmp_path):
    tasks, losses = ("gsm8k", "arithmetic"), ("ce", "smmd")
    if made == "conformance":
        cells = generated_run.matrix(["builtin/tiny"], [*tasks], losses, (0,))
        generated_run.write_run(tmp_path, cells, n=80)
    else:
        quick_run(tmp_path, tasks=tasks, losses=losses, n=80)
    run = sb.read_run(tmp_path)
    counts = first_digit_distributions(run)
    for task in tasks:
        targets = targets_of(run, task)
        answers = first_digits(target.rpartition("####")[2] for target in targets)
        for loss in ("base", *losses):
            data = counts[(counts["task"] == task) & (counts["loss"] == loss)]
            assert dict(zip(data["digit"], data["n"], strict=True)) == answers
        # a rationale's first number is another than the answer's
        assert (answers != first_digits(targets)) is (task == "gsm8k")
    said = " On gsm8k a rationale stands before the answer: its digits are not shown, and the model"
    assert said in words(DigitDistribution(digit=3).build(run))


def test_notes_on_rationales_tokens_and_clocks_stand_where_there_are_such(artefact, clocks):
    for word in ("rationale", "hold several digits", "o'clock"):
        assert word not in words(artefact)
    caption = words(DigitProbe().build(clocks))
    assert "10, 11 and 12 o'clock begin with 1." in caption


def test_answers_that_begin_with_no_numeric_token_have_no_digit_distribution(run, tmp_path):
    run = changed(
        run, tmp_path, "probes.parquet", lambda probes: probes[probes["answer_digit"] != 0]
    )
    assert DigitDistribution().skip(run) == "no answer begins with a numeric token other than 0"


def test_a_token_of_several_digits_counts_by_its_first_and_the_caption_says_so(run, tmp_path):
    def longer(probes):
        vectors = pd.Series([[0.001] * 1000, *[None] * (len(probes) - 1)], dtype=object)
        values = np.where(probes["target_value"] == 7, 731.0, 0.0)
        return probes.assign(vector=vectors, target_value=values)

    run = changed(run, tmp_path, "probes.parquet", longer)
    assert set(first_digit_distributions(run)["digit"]) == {7}
    caption = words(DigitDistribution().build(run))
    assert "Numeric tokens of builtin/tiny (N = 1,000) hold several digits and are" in caption


def test_figure_2_is_the_row_of_clocks_whose_hour_begins_with_5(clocks):
    artefact = DigitProbe().build(clocks)
    assert set(artefact.data["task"]) == {"clock_time"}
    assert set(artefact.data["digit"]) == {5}
    every = first_digit_distributions(clocks)
    same = every[(every["task"] == "clock_time") & (every["digit"] == 5)]
    assert artefact.data["p5"].tolist() == same["p5"].tolist()


def test_every_true_digit_of_30_examples_has_a_row_and_every_loss_a_column(artefact):
    axes = artefact.figure.axes
    sizes = artefact.data.groupby("digit")["n"].max()
    enough = sizes[sizes >= 30]
    assert 0 < len(enough) < len(sizes)
    assert len(axes) == 4 * len(enough)
    rows = [f"true {digit}\nn = {n}" for digit, n in enough.items()]
    assert [axis.get_ylabel() for axis in axes[::4]] == rows
    assert [axis.get_title() for axis in axes[:4]] == ["untuned", "CE", "NTL", "SMMD"]
    few = ", ".join(map(str, sizes[sizes < 30].index))
    assert f"fewer than 30 test examples: true {few} (builtin/tiny, arith" in words(artefact)


def test_the_number_of_a_panel_stands_above_bars_and_whiskers(artefact):
    with figure_style():
        artefact.figure.draw_without_rendering()
    for axis in artefact.figure.axes:
        (number,) = axis.texts
        assert number.get_window_extent().y0 > axis.transData.transform((0, 1))[1]


def test_the_bar_of_the_true_digit_is_hatched_and_its_height_in_the_table(run):
    artefact = DigitDistribution(digit=2).build(run)
    axes = artefact.figure.axes
    for axis in axes:
        assert [bool(bar.get_hatch()) for bar in axis.patches] == [d == 2 for d in range(10)]
    heights = [f"{axis.patches[2].get_height():.3f}" for axis in axes]
    assert artefact.table["Loss"].tolist() == ["n", "untuned", "CE", "NTL", "SMMD"]
    assert artefact.table["p(2)"].tolist() == ["31", *heights]
    assert artefact.table["Seeds"].tolist() == ["–", "1", "2", "2", "2"]


def test_a_digit_probe_names_n_seeds_and_what_has_no_result(clocks, tmp_path):
    artefact = DigitProbe().build(without(clocks, tmp_path, loss="smmd"))
    assert "n = 60 test examples; seeds 0, 1; at most" in words(artefact)
    assert artefact.caption.endswith("Without a result: builtin/tiny smmd seeds 0, 1 (pending).")
    assert artefact.table["Loss"].tolist() == ["n", "untuned", "CE"]


def test_long_labels_stay_above_their_own_panel(tmp_path):
    losses = ("ce", "gce", "ntl", "smmd", "smmd[sigma=1+1.5+2+2.5+3]",
              "smmd[kernel=shuffled,term=mmd]")  # fmt: skip
    with figure_style():
        figure = DigitDistribution(digit=1).build(quick_run(tmp_path, losses=losses, n=150)).figure
        figure.draw_without_rendering()
    titles = [axis.title.get_window_extent() for axis in figure.axes[:7]]
    assert all(left.x1 < right.x0 for left, right in pairwise(titles))


def test_blocks_of_few_losses_have_panels_as_wide_as_the_others(tmp_path):
    quick_run(tmp_path, tasks=("gsm8k",), losses=(), n=150)
    run = quick_run(tmp_path, losses=("ce", "smmd"), n=150)
    with figure_style():
        figure = DigitDistribution(digit=1).build(run).figure
        figure.draw_without_rendering()
    widths = [axis.get_window_extent().width for axis in figure.axes if axis.axison]
    assert len(widths) == 4
    assert max(widths) < 1.1 * min(widths)
