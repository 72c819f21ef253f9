"""The mean predicted distribution at the first digit of the answer."""

import pytest
from smmd_bench.reports.digit_distribution import (
    DigitDistribution,
    DigitProbe,
    average_first_digits,
)

from tests.runs import quick_run

DIGITS = [f"p{digit}" for digit in range(10)]


@pytest.fixture(scope="module")
def clocks(tmp_path_factory):
    tasks = ("clock_time", "arithmetic")
    folder = tmp_path_factory.mktemp("clocks")
    return quick_run(folder, tasks=tasks, losses=("ce", "smmd"), seeds=(0, 1), n=60)


def test_digit_distributions_are_means_over_the_first_digit(run):
    data = average_first_digits(run)
    probes = run.probes
    first = probes[
        (probes["answer_digit"] == 0) & (probes["target_value"] == 5) & (probes["loss"] == "ce")
    ]
    (row,) = data[(data["digit"] == 5) & (data["loss"] == "ce")].to_dict("records")
    assert [row[name] for name in DIGITS] == pytest.approx(first[DIGITS].mean().tolist())
    assert row["p5_deviation"] == pytest.approx(first["p5"].std(ddof=0))
    assert (row["n"], row["seeds"]) == (len(first) // 2, 2)
    assert data[DIGITS].sum(axis=1).to_numpy() == pytest.approx(1)


def test_behind_a_rationale_n_counts_the_first_digits_of_the_answers(tmp_path):
    run = quick_run(tmp_path, tasks=("gsm8k",), losses=("ce", "smmd"), n=80)
    targets = run.completions.drop_duplicates("uid")["target"]
    first = targets.str.rpartition("####")[2].str.extract("([0-9])", expand=False).astype(int)
    expected = first[first > 0].value_counts().sort_index().to_dict()
    counts = average_first_digits(run)
    for _, data in counts.groupby("loss", observed=True):
        assert dict(zip(data["digit"], data["n"], strict=True)) == expected


def test_figure_2_is_the_row_of_clocks_whose_hour_begins_with_5(clocks):
    artefact = DigitProbe().build(clocks)
    assert set(artefact.data["task"]) == {"clock_time"}
    assert set(artefact.data["digit"]) == {5}
    every = average_first_digits(clocks)
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
