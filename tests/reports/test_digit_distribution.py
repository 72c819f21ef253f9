"""The mean predicted distribution at the first digit of the answer."""

import re
from collections import Counter

import pytest
from smmd_bench.reports.digit_distribution import (
    DigitDistribution,
    DigitProbe,
    first_digit_distributions,
)

from tests.runs import quick_run

DIGITS = [f"p{digit}" for digit in range(10)]


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


def test_behind_a_rationale_n_counts_the_first_digits_of_the_answers(tmp_path):
    tasks, losses = ("gsm8k", "arithmetic"), ("ce", "smmd")
    run = quick_run(tmp_path, tasks=tasks, losses=losses, n=80)
    counts = first_digit_distributions(run)
    for task in tasks:
        targets = targets_of(run, task)
        answers = first_digits(target.rpartition("####")[2] for target in targets)
        for loss in ("base", *losses):
            data = counts[(counts["task"] == task) & (counts["loss"] == loss)]
            assert dict(zip(data["digit"], data["n"], strict=True)) == answers
        # a rationale's first number is another than the answer's
        assert (answers != first_digits(targets)) is (task == "gsm8k")


def test_figure_2_is_the_row_of_clocks_whose_hour_begins_with_5(clocks):
    artefact = DigitProbe().build(clocks)
    assert set(artefact.data["task"]) == {"clock_time"}
    assert set(artefact.data["digit"]) == {5}
    every = first_digit_distributions(clocks)
    same = every[(every["task"] == "clock_time") & (every["digit"] == 5)]
    assert artefact.data["p5"].tolist() == same["p5"].tolist()


def test_the_bar_of_the_true_digit_is_hatched_and_its_height_in_the_table(run):
    artefact = DigitDistribution(digit=2).build(run)
    axes = artefact.figure.axes
    for axis in axes:
        assert [bool(bar.get_hatch()) for bar in axis.patches] == [d == 2 for d in range(10)]
    heights = [f"{axis.patches[2].get_height():.3f}" for axis in axes]
    assert artefact.table["Loss"].tolist() == ["n", "untuned", "CE", "NTL", "SMMD"]
    assert artefact.table["p(2)"].tolist() == ["31", *heights]
    assert artefact.table["Seeds"].tolist() == ["–", "1", "2", "2", "2"]
