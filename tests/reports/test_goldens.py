"""Tables as they were, as CSV, of runs of every kind."""

import os
from pathlib import Path

import pytest

from smmd_bench.plugin_system.registry import load
from smmd_bench.publishing import tables

FOLDER = Path(__file__).parent.parent / "data/golden"

GOLDENS = {
    "arithmetic_paper_model": ("arithmetic_table", "arithmetic"),
    "bandwidths_one_task": ("bandwidth_table", "variants"),
    "chart_paper_model": ("chart_table", "pictures"),
    "clock_paper_model": ("clock_table", "pictures"),
    "error_histogram_paper_model": ("error_histogram", "word problems"),
    "kernels_two_models": ("kernel_table", "variants of the paper"),
    "math_paper_model": ("math_table", "math"),
    "mmlu_paper_model": ("mmlu_table", "mmlu"),
    "regression_gsm8k": ("regression_table", "a look at mmlu"),
    "samsum_paper_model": ("samsum_table", "summaries"),
    "scale_errors_paper_model": ("scale_errors", "math of as many"),
    "signed_errors_paper_model": ("signed_errors", "word problems of two losses"),
    "terms_one_task": ("terms_table", "variants"),
}


def assert_golden(name, artefact):
    """With SMMD_BENCH_GOLDEN=write the file is written instead: then read its diff."""
    text, file = tables.to_csv(artefact.table), FOLDER / f"{name}.csv"
    if os.environ.get("SMMD_BENCH_GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"differs from {file}"


@pytest.mark.parametrize("name", GOLDENS)
def test_a_table_is_as_it_was(name, runs):
    report, run = GOLDENS[name]
    assert_golden(name, load("reports", report).build(runs(run)))
