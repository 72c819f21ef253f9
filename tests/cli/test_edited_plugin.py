"""A plugin file is edited between two runs of one command: what it does is what the run shows."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from smmd_bench.results.frames import read_run

from .conftest import call

LOSS = (Path(__file__).parents[2] / "examples" / "own_loss.py").read_text(encoding="utf-8")
JOB = (
    "train-eval", "--task", "arithmetic", "--losses", "huber", "--plugin", "mine.py", "--no-base",
    "--engine", "transformers", "--train-examples", "64", "--epochs", "1",
    "--validation-examples", "8", "--test-examples", "8", "--out", "run",
)  # fmt: skip
REPORT = ("report", "run", "--only", "arithmetic_table", "--format", "csv")


def train(folder: Path) -> str:
    """Run the job in `folder`; returns what it prints."""
    done = call(*JOB, cwd=folder, SMMD_BENCH_CACHE=str(folder / "cache"), OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    return done.stdout


def manifest(folder: Path) -> dict[str, Any]:
    return read_run(folder / "run").manifest


def auxiliary(folder: Path, cell: str) -> float:
    """The loss's own term in the first step, which the weights of the base alone decide."""
    log = pd.read_parquet(folder / "run" / "cells" / cell / "train_log.parquet")
    return float(log["auxiliary"].iloc[0])


@pytest.mark.engine
@pytest.mark.slow
def test_a_loss_is_trained_again_when_it_is_edited(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(LOSS)
    train(tmp_path)
    (first,) = manifest(tmp_path)["cells"]
    before = auxiliary(tmp_path, first)
    file.write_text(LOSS.replace("        values = ", "        # V_num\n        values = "))
    assert "Nothing to do" in train(tmp_path)
    assert manifest(tmp_path)["cells"] == [first]

    file.write_text(LOSS.replace("return loss,", "return 7 * loss,"))
    cache = {"cwd": tmp_path, "SMMD_BENCH_CACHE": str(tmp_path / "cache")}
    unnamed = " ".join(call(*REPORT, **cache).stderr.split())
    assert "mine.py runs only if you name it" in unnamed  # as it is now
    for command in (REPORT, ("show", "run")):
        done = call(*command, "--plugin", "mine.py", **cache)
        assert done.returncode == 0, done.stderr
        said = " ".join(done.stderr.split())
        assert "Note: the source of the loss huber has changed since run was made" in said
    assert "train huber seed 0" in train(tmp_path)
    (second,) = manifest(tmp_path)["cells"]
    assert second != first
    assert list(manifest(tmp_path)["plugins"]) == ["loss huber"]
    assert auxiliary(tmp_path, second) == pytest.approx(7 * before)
