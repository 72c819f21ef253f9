"""Ten processes at once on one run, and ten that share one new cache."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.injected import result_of
from tests.cli.conftest import COMMAND, call

pytestmark = [pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(900)]
TEN = range(10)
TRAIN = [
    *("train-eval", "--task", "arithmetic[level=easy,operations=1]", "--losses", "ce,smmd"),
    *("--engine", "transformers", "--epochs", "1", "--train-examples", "64"),
    *("--validation-examples", "4", "--test-examples", "8", "--out"),
]


def start(*words: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [COMMAND, *map(str, words)], env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_of_ten_equal_commands_one_works_and_the_others_say_so(tmp_path):
    run, alone = tmp_path / "run", tmp_path / "alone"
    processes = [start(*TRAIN, run) for _ in TEN]
    ended = [(*process.communicate(), process.returncode) for process in processes]
    finished = [said for said, _, status in ended if status == 0]
    refused = [error for _, error, status in ended if status == 2]
    assert finished
    assert len(finished) + len(refused) == len(ended)
    assert all("Another process is working on" in error for error in refused)
    assert call(*TRAIN, alone).returncode == 0
    (of_ten, of_one) = (
        {name: content for name, content in result_of(r).items() if name.startswith("cells/")}
        for r in (run, alone)
    )
    assert of_ten == of_one


def test_ten_workers_share_a_plan_and_train_each_cell_once(tmp_path):
    file, run = tmp_path / "experiment.yaml", tmp_path / "run"
    recipe = {"train_examples": 64, "epochs": 1, "validation_examples": 4, "test_examples": 8}
    task = "arithmetic[level=easy,operations=1]"
    asked = {"tasks": [task], "losses": ["ce", "smmd", "ntl"], "engine": "transformers"}
    file.write_text(json.dumps({"name": "ten", **asked, "recipe": recipe}))
    assert call("plan", file, "--out", run).returncode == 0
    workers = [start("work", "--run", run) for _ in TEN]
    ended = [(*process.communicate(), process.returncode) for process in workers]
    assert [status for *_, status in ended] == [0] * len(ended), ended
    trained = [*(run / "logs").glob("train-*.json")]
    assert len(trained) == 4  # with the untuned base
    assert not [*run.glob("cells/*/FAILED.json")]


def test_ten_processes_draw_pictures_into_one_cache(tmp_path):
    def pictures(cache: Path) -> dict[str, bytes]:
        files = cache.glob("clock_time/**/*")
        return {str(f.relative_to(cache)): f.read_bytes() for f in files if f.is_file()}

    sample = ("sample", "clock_time", "-n", "40")
    shared, alone = tmp_path / "shared", tmp_path / "alone"
    processes = [start(*sample, SMMD_BENCH_CACHE=str(shared)) for _ in TEN]
    said = {process.communicate()[0].replace(str(shared), "") for process in processes}
    assert [process.returncode for process in processes] == [0] * len(processes)
    once = call(*sample, SMMD_BENCH_CACHE=str(alone))
    assert said == {once.stdout.replace(str(alone), "")}
    assert pictures(shared) == pictures(alone)
    assert len(pictures(alone)) == 40
