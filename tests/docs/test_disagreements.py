"""docs/footguns.md: what it says of the paper's numbers follows from reports/paper.yaml."""

import math

import pytest
from smmd_bench.reports._paper import rows

from .documents import ROOT

TABLES = (
    "math_reasoning", "arithmetic", "clock", "chartqa", "ablation", "kernel_ablation", "sigma"
)  # fmt: skip
PAGE = (ROOT / "docs" / "footguns.md").read_text(encoding="utf-8")
ROWS = [(name, row) for name in TABLES for row in rows(name) if "exact_match" in row]


def fit(value: float, questions: int) -> str:
    """How a printed percentage comes from a whole number of right answers, if it does."""
    near = value * questions / 100
    if any(abs(round(100 * n / questions, 2) - value) < 1e-9 for n in (int(near), math.ceil(near))):
        return "rounded"
    cut = abs(math.floor(1e4 * math.ceil(near) / questions + 1e-9) / 100 - value) < 1e-9
    return "cut" if cut else "neither"


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
    values = [row["exact_match"] for _, row in ROWS if row["task"] == task]
    found = [(fit(value, questions), value) for value in values]
    assert sum(how == "cut" for how, _ in found) == cut
    assert sorted(value for how, value in found if how == "neither") == neither
    assert all(f"{value:.2f}" in PAGE for value in neither)
