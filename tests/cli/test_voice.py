"""`--quiet` and `--json` of commands that need no training; see also test_interruption."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest

from smmd_bench.cli.voice import advise_retry, rows_of
from smmd_bench.errors import CellSkippedError, UserError
from smmd_bench.results.frames import read_run
from smmd_bench.run.run_directory import record_failure
from smmd_bench.storage.files import read_json

from .conftest import run_here


@pytest.mark.usefixtures("few_reports")
def test_json_is_one_object_with_paths_and_rows(run_folder):
    out = run_here("report", run_folder, "--json")
    content = json.loads(out.stdout)
    assert content["run"] == str(run_folder)
    for file in (content["page"], *content["tables"], *content["figures"]):
        assert Path(file).is_file()
    metrics = read_run(run_folder).metrics
    assert len(content["metrics"]) == len(metrics)
    found = {(m["address"], m["metric"]): m["value"] for m in content["metrics"]}
    for row in metrics.to_dict("records"):
        value = found[row["address"], row["metric"]]
        assert value == (row["value"] if math.isfinite(row["value"]) else None)
    assert len(content["comparisons"]) == len(read_run(run_folder).comparisons)


@pytest.mark.parametrize("flag", ["--quiet", "--json"])
def test_errors_are_said_all_the_same(flag, tmp_path):
    out = run_here("report", tmp_path, flag)
    assert (out.returncode, out.stdout) == (2, "")
    assert "is not a run folder" in out.stderr


def test_a_dry_run_for_machines(tmp_path):
    flags = ["--task", "arithmetic", "--losses", "ce", "--dry-run"]
    content = json.loads(run_here("train-eval", *flags, "--json", cwd=tmp_path).stdout)
    assert [cell["to_do"] for cell in content["cells"]] == [
        ["decode", "measure"],
        ["train", "decode", "measure"],
    ]
    assert run_here("train-eval", *flags, "--quiet", cwd=tmp_path).stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_only_what_the_same_command_can_cure_is_said_to_be_tried_again(tmp_path):
    errors = (UserError("raise N"), MemoryError("none left"), CellSkippedError("no digits"))
    failures = []
    for name, error in zip("abc", errors, strict=True):
        record_failure(tmp_path / name, "train", error)
        failures.append(read_json(tmp_path / name / "FAILED.json"))
    mistake, memory, skipped = failures
    assert advise_retry([memory, skipped, None]) == "The same command tries them again."
    assert advise_retry([mistake, mistake]) == (
        "The same command fails again: first change what the errors name."
    )
    said = advise_retry([mistake, memory, memory])
    assert "tries them again; 1 of them fail again until you" in said


def test_missing_and_non_finite_values_are_null():
    frame = pd.DataFrame(
        {"a": [1.5, math.nan, math.inf], "n": [1, 2, 3], "t": pd.Categorical(["x", None, "y"])}
    )
    assert rows_of(frame) == [
        {"a": 1.5, "n": 1, "t": "x"},
        {"a": None, "n": 2, "t": None},
        {"a": None, "n": 3, "t": "y"},
    ]
    json.dumps(rows_of(frame), allow_nan=False)
