"""docs/disagreements.md: what it says of the paper's numbers follows from reports/paper.yaml."""

import math
from collections import defaultdict

import pytest
import yaml

from .documents import ROOT

TABLES = yaml.safe_load((ROOT / "reports" / "paper.yaml").read_text(encoding="utf-8"))["tables"]
PAGE = (ROOT / "docs" / "disagreements.md").read_text(encoding="utf-8")


def accuracies(task):
    for table in TABLES.values():
        for row in table["rows"]:
            if row["task"] == task and "exact_match" in row:
                yield row["exact_match"]


def fit(value, questions):
    """How a printed percentage comes from a whole number of right answers, if it does."""
    near = value * questions / 100
    for right in (math.floor(near), math.ceil(near)):
        if abs(round(100 * right / questions, 2) - value) < 1e-9:
            return "rounded"
    if abs(math.floor(1e4 * math.ceil(near) / questions + 1e-9) / 100 - value) < 1e-9:
        return "cut"
    return "neither"


@pytest.mark.parametrize(
    ("task", "questions", "cut", "neither"),
    [
        ("gsm8k", 1319, 6, [48.12, 54.99]),
        ("svamp", 1000, 0, []),
        ("arithmetic", 10000, 0, []),
        ("clock_time", 1440, 7, [69.46]),
        ("chartqa", 1915, 8, []),
    ],
)
def test_printed_accuracies_are_rounded_cut_or_neither(task, questions, cut, neither):
    found = [(fit(value, questions), value) for value in accuracies(task)]
    assert sum(how == "cut" for how, _ in found) == cut
    assert sorted(value for how, value in found if how == "neither") == neither
    assert all(f"{value:.2f}" in PAGE for value in neither)


def test_the_accuracies_of_chartqa_fit_1915_questions_and_no_other_number_near():
    values = list(accuracies("chartqa"))
    fitting = [
        n for n in range(1900, 1940) if not any(fit(value, n) == "neither" for value in values)
    ]
    assert fitting == [1915]
    assert len(values) == 32
    assert "All 32 accuracies fit 1,915 questions" in PAGE


def test_smmd_is_ahead_of_cross_entropy_everywhere_and_of_the_others_not():
    ahead, ties = set(), 0
    for name in ("math_reasoning", "arithmetic", "clock", "chartqa"):
        by_row: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for row in TABLES[name]["rows"]:
            by_row[row["model"], row["task"]][row["loss"]] = row["exact_match"]
        for (model, task), values in by_row.items():
            assert values["smmd"] > values["ce"]
            best = max((value, loss) for loss, value in values.items() if loss != "smmd")
            ties += best[0] == values["smmd"]
            if best[0] > values["smmd"]:
                ahead.add((model, task, best[1]))
                assert f"({best[0]:.2f} to {values['smmd']:.2f})" in PAGE
    assert ties == 2
    assert ahead == {
        ("llama3-8b", "gsm8k", "gce"),
        ("llama-3.2-vision-11b", "clock_time", "gce"),
        ("qwen2.5-vl-3b", "chartqa", "ntil"),
    }
