"""A plugin file is edited between two runs of one command: what it does is what the run shows."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from .conftest import call

LOSS = '''
from dataclasses import dataclass
from typing import ClassVar
from smmd_bench.contracts import NumericLoss

@dataclass(frozen=True)
class Steep:
    """A loss of one's own."""
    name: ClassVar[str] = "steep"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    weight: float = 1.0
    def bind(self, vocabulary):
        return _Steep(self, vocabulary)

class _Steep(NumericLoss):
    def forward(self, numeric):
        return 0.1 * numeric.logits.square().sum(), numeric.target.numel()
'''
JOB = (
    "train-eval", "--task", "arithmetic", "--losses", "steep", "--plugin", "steep.py", "--no-base",
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
    content: dict[str, Any] = json.loads((folder / "run" / "manifest.json").read_text())
    return content


def auxiliary(folder: Path, cell: str) -> float:
    """The loss's own term in the first step, which the weights of the base alone decide."""
    log = pd.read_parquet(folder / "run" / "cells" / cell / "train_log.parquet")
    return float(log["auxiliary"].iloc[0])


@pytest.mark.engine
@pytest.mark.slow
def test_a_loss_is_trained_again_when_it_is_edited(tmp_path):
    file = tmp_path / "steep.py"
    file.write_text(LOSS)
    train(tmp_path)
    (first,) = manifest(tmp_path)["cells"]
    before = auxiliary(tmp_path, first)
    file.write_text(LOSS.replace("    def bind", "    # by Huber, 1964\n\n    def bind"))
    assert "Nothing to do" in train(tmp_path)
    assert manifest(tmp_path)["cells"] == [first]

    file.write_text(LOSS.replace("0.1 *", "0.7 *"))
    for command in (REPORT, ("show", "run")):
        done = call(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        said = " ".join(done.stderr.split())
        assert "Note: the source of the loss steep has changed since run was made" in said
    out = train(tmp_path)
    assert "Nothing to do" not in out
    assert "train steep seed 0" in out
    (second,) = manifest(tmp_path)["cells"]
    assert second != first
    assert list(manifest(tmp_path)["plugins"]) == ["loss steep"]
    assert auxiliary(tmp_path, second) == pytest.approx(7 * before)
