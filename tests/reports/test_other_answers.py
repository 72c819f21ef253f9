"""Tasks whose answers are no numbers: what is left out of the analyses of numbers, and shown."""

import pytest

from smmd_bench.plugin_system.registry import load
from smmd_bench.publishing.examples import embedded_examples
from smmd_bench.storage.files import read_json


@pytest.mark.parametrize("name", ["scale_errors", "error_histogram", "signed_errors"])
def test_summaries_and_times_are_no_numbers(name, runs):
    tasks = set(load("reports", name).build(runs("all tasks")).data["task"].unique())
    assert tasks == {"arithmetic", "gsm8k", "chartqa", "halving"}


def test_mcnemars_test_is_made_where_answers_are_right_or_wrong(runs):
    run = runs("all tasks")
    compared = run.comparisons.set_index("task")
    rouge = compared.loc["samsum"].query("metric == 'rougeL'")
    assert rouge[["b", "c"]].isna().all(axis=None)
    exact = compared[compared["metric"] == "exact_match"]
    assert exact.loc["gsm8k", ["b", "c", "p"]].notna().all(axis=None)
    address = compared.loc["samsum", "address"].iloc[0]
    content = read_json(run.path / "cells" / address / "metrics.json")
    assert content["counts"].keys() == {"text_match", "truncated"}


def test_the_page_marks_no_summary_as_right_or_wrong(runs):
    found = embedded_examples(runs("all tasks"))
    flags = {"samsum": set(), "gsm8k": set(), "clock_time": set()}
    for row in found["rows"]:
        judged = (category >= 0 for category in row[5])
        flags.setdefault(found["groups"][row[0]]["task"], set()).update(judged)
    assert flags == {"samsum": {False}, "gsm8k": {True}, "clock_time": {True}}
