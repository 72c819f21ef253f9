"""`smmd-bench score`, end to end."""

import json
import shutil
from fractions import Fraction

import pandas as pd
import pytest

from smmd_bench.storage.files import read_json
from tests.conftest import DATA

from .conftest import run_here

pytestmark = pytest.mark.usefixtures("few_reports")
TASK = "arithmetic[level=easy]"
COUNT = 20
FIRST, SECOND = range(0, 12), range(4, 19)
"""What each file gets right: 12 and 15 of 20, 4 by the first alone and 7 by the second alone."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with ce.jsonl and smmd.csv, made from what `smmd-bench sample` prints."""
    folder = tmp_path_factory.mktemp("score")
    printed = call(folder, f"sample {TASK} --split test -n {COUNT} --json").stdout
    examples = [json.loads(line) for line in printed.splitlines()]
    for example in examples:
        example["wrong"] = str(Fraction(example["target"]) + 1)

    with (folder / "ce.jsonl").open("w") as stream:
        for at, example in enumerate(examples):
            text = example["target" if at in FIRST else "wrong"]
            stream.write(json.dumps({"uid": example["uid"], "prediction": text}) + "\n")

    answers = [
        e["target" if at in SECOND else "wrong"] for at, e in enumerate(examples)
    ]
    pd.DataFrame({"id": range(COUNT), "output": answers}).to_csv(
        folder / "smmd.csv", index=False
    )
    return folder


def call(folder, line):
    return run_here(line, cwd=folder, SMMD_BENCH_CACHE=str(folder / "cache"))


SCORE = (
    f"score --task {TASK} --limit {COUNT} --predictions ce.jsonl --predictions smmd.csv"
)


@pytest.mark.long
def test_a_folder_stands_for_the_samples_in_it(tmp_path):
    place = tmp_path / "results/someone__model"
    place.mkdir(parents=True)
    samples = DATA / "lm_eval/samples_easy_2026-11-21.jsonl"
    shutil.copy(samples, place / "samples_easy_2026-11-21T08-04-31.576316.jsonl")
    done = call(tmp_path, f"score --task {TASK} --predictions results --partial")
    assert done.returncode == 0
    assert "576316.jsonl: 5 completions by prompt." in done.stdout

    # lm-eval spells org/model and the path of a model with __.
    shutil.copytree(place, tmp_path / "results/__home__me__other")
    command = f"score --task {TASK} --predictions results --partial --out two --json"
    both = call(tmp_path, command)
    assert both.returncode == 0
    manifest = read_json(tmp_path / "two/manifest.json")
    assert manifest["experiment"]["losses"] == ["other", "model"]


def test_two_files_give_the_paired_comparison_and_the_second_command_has_nothing_to_do(
    folder,
):
    first = call(folder, SCORE)
    assert first.returncode == 0
    assert first.stderr == ""
    assert "ce.jsonl: 20 completions by uid. Nothing else in it says" in first.stdout
    assert "smmd.csv: 20 completions by position." in first.stdout
    (run_folder,) = (folder / "runs").iterdir()
    assert run_folder.name.startswith("score_arithmetic-level-easy_ce_smmd_")
    row = next(line for line in first.stdout.splitlines() if line.startswith("SMMD  "))
    assert row.split()[1] == "75.0"
    assert "+15.0" in row
    assert " 0.549 " in row
    for name in ("tables/arithmetic_table.tex", "figures/overview.png", "index.html"):
        assert (run_folder / "reports" / name).exists()

    again = call(folder, SCORE)
    assert again.returncode == 0
    assert f"Nothing to do: runs/{run_folder.name} is complete." in again.stdout
    assert "+15.0" in again.stdout


def test_quiet_says_where_the_results_are_and_json_what_they_are(folder):
    quiet = call(folder, f"{SCORE} --out said --quiet")
    assert quiet.returncode == 0
    assert quiet.stderr == ""
    named = [line.split(":")[0] for line in quiet.stdout.splitlines()]
    assert named == ["Tables", "Figures", "Page"]

    content = json.loads(call(folder, f"{SCORE} --out said --json").stdout)
    assert content["run"] == "said"
    assert content["worked"] is False
    assert content["failed"] == {}
    exact = [row for row in content["metrics"] if row["metric"] == "exact_match"]
    assert {row["loss"]: row["value"] for row in exact} == {"ce": 60.0, "smmd": 75.0}
