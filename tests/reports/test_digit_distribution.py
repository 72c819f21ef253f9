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
    totals = data[DIGITS].sum(axis=1)
    assert [*totals] == pytest.approx([1] * len(data))

    probes = run.probes.query(
        "answer_digit == 0 and target_value == 5 and loss == 'ce'"
    )
    row = data.query("digit == 5 and loss == 'ce'").iloc[0]
    means = probes[DIGITS].mean()
    deviation = probes["p5"].std(ddof=0)
    assert [*row[DIGITS]] == pytest.approx([*means])
    assert row["p5_deviation"] == pytest.approx(deviation)

    # Both seeds answer the same examples.
    assert row["n"] == len(probes) // 2
    assert row["seeds"] == 2


def test_behind_a_rationale_n_counts_the_first_digits_of_the_answers(tmp_path):
    run = quick_run(tmp_path, tasks=("gsm8k",), losses=("ce", "smmd"), n=80)
    examples = run.completions.drop_duplicates("uid")
    answers = examples["target"].str.rpartition("####")[2]
    digits = answers.str.extract("([0-9])", expand=False)
    digits = digits.astype(int)
    expected = digits[digits > 0].value_counts()

    counts = average_first_digits(run)
    for _, data in counts.groupby("loss", observed=True):
        sizes = data.set_index("digit")["n"]
        assert sizes.to_dict() == expected.to_dict()


def test_figure_2_is_the_row_of_clocks_whose_hour_begins_with_5(clocks):
    data = DigitProbe().build(clocks).data
    assert set(data["task"]) == {"clock_time"}
    assert set(data["digit"]) == {5}
    expected = average_first_digits(clocks).query("task == 'clock_time' and digit == 5")
    assert data["p5"].tolist() == expected["p5"].tolist()


def test_the_bar_of_the_true_digit_is_hatched_and_its_height_in_the_table(run):
    artefact = DigitDistribution(digit=2).build(run)
    heights = []
    for axis in artefact.figure.axes:
        hatched = [digit for digit, bar in enumerate(axis.patches) if bar.get_hatch()]
        assert hatched == [2]
        height = axis.patches[2].get_height()
        heights.append(f"{height:.3f}")
        # It is a probability, which the figure says above the panel, too.
        assert axis.get_ylim() == (0, 1)
        assert axis.texts[0].get_text() == f"p(2) = {height:.2f}"

    table = artefact.table
    assert table["Loss"].tolist() == ["n", "untuned", "CE", "NTL", "SMMD"]
    assert table["p(2)"].tolist() == ["31", *heights]
    assert table["Seeds"].tolist() == ["–", "1", "2", "2", "2"]
