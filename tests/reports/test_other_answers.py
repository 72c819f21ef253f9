"""Tasks whose answers are no numbers: what is left out of the analyses of numbers, and shown."""

from __future__ import annotations

import pytest
from smmd_bench.reports.digit_distribution import DigitDistribution
from smmd_bench.reports.error_histogram import ErrorHistogram
from smmd_bench.reports.samsum_table import SamsumTable
from smmd_bench.reports.scale_errors import ScaleErrors
from smmd_bench.reports.signed_errors import SignedErrors

import smmd_bench as sb
from smmd_bench.publishing.examples import embedded_examples
from smmd_bench.storage.files import read_json, write_json
from tests.runs import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Summaries, times and numbers."""
    folder = tmp_path_factory.mktemp("runs") / "mixed"
    tasks = ("samsum", "clock_time", "gsm8k")
    write_run(folder, tasks=tasks, losses=("ce", "smmd"), n=30, steps=5, resamples=20)
    return sb.read_run(folder)


@pytest.mark.parametrize("report", [ScaleErrors, ErrorHistogram, SignedErrors, DigitDistribution])
def test_summaries_and_times_are_no_numbers(report, run):
    assert {"gsm8k"} <= set(report().build(run).data["task"].unique()) <= {"gsm8k", "clock_time"}
    summaries = run.only(run.cells[run.cells["task"] == "samsum"])
    assert report().skip(summaries) == "no task has numbers as answers"
    if report is not DigitDistribution:
        times = run.only(run.cells[run.cells["task"] == "clock_time"])
        assert report().skip(times) == "no task has numbers as answers"


def test_mcnemars_test_is_made_where_answers_are_right_or_wrong(run):
    compared = run.comparisons.set_index("task")
    assert compared.loc["samsum", "p"].isna().all()
    assert compared.loc["gsm8k", "p"].notna().all()
    address = compared.loc["samsum", "address"].iloc[0]
    content = read_json(run.path / "cells" / address / "metrics.json")
    assert content["counts"].keys() == {"text_match", "truncated"}


def test_the_page_marks_no_summary_as_right_or_wrong(run):
    found = embedded_examples(run)
    flags = {"samsum": set(), "gsm8k": set(), "clock_time": set()}
    for group, *_, exact, _ in found["rows"]:
        flags[found["groups"][group]["task"]] |= set(exact)
    assert flags == {"samsum": {"-"}, "gsm8k": {"0", "1"}, "clock_time": {"0", "1"}}


def test_the_caption_says_how_few_tokens_of_summaries_are_numeric(run):
    for file in run.path.glob("cells/*/train.json"):
        counts = {"tokens": 412_345, "digit_tokens": 6_400, "numeric": 6_321}
        write_json(file, {**read_json(file), "numeric_targets": counts})
    caption = SamsumTable().build(sb.read_run(run.path)).caption
    assert "6,321 of 412,345 (1.5%)" in caption
