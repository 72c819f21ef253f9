"""`smmd-bench overhead` as it is called."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from smmd_bench.overhead.settings import OverheadSettings
from tests.overhead.conftest import tiny_settings

COMMAND = str(Path(sys.executable).parent / "smmd-bench")
SMALL = ["overhead", "--geometry", "tiny", "--steps", "3", "--drop", "1", "--repeats", "1"]


def call(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, cwd=cwd)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--geometry", "qwen2.5-1.5"], ["Unknown geometry", "did you mean qwen2.5-1.5b"]),
        (["--geometry", "none/config.json"], ["Unknown geometry", "path of a config.json"]),
        (["--losses", "smd"], ["did you mean smmd"]),
        (["--losses", "smmd[sigma=0]"], ["sigma must be from 0.001"]),
        (["--losses", ","], ["--losses names no loss"]),
        (["--losses", "ntil", "--numeric-tokens", "5"], ["ntil cannot be measured here"]),
        (["--steps", "20"], ["--drop 20 leaves none of 20 steps"]),
        (["--repeats", "0"], ["--repeats must be greater than or equal to 1"]),
        (["--supervised", "0"], ["--supervised must be greater than 0"]),
        (["--numeric", "1.1"], ["--numeric must be less than or equal to 1"]),
        (["--numeric-tokens", "200000"], ["below the 151936 tokens"]),
        (["--threads", "0"], ["--threads must be"]),
        (["--device", "gpu"], ["'gpu' is not one of"]),
        (["--plugin", "none.py"], ["does not exist"]),
        (["--out", "FILE"], ["FILE"]),
    ],
)
def test_a_mistake_is_one_sentence_with_status_2(
    arguments: list[str], words: list[str], tmp_path: Path
) -> None:
    (tmp_path / "FILE").touch()
    out = call("overhead", *arguments, cwd=tmp_path)
    assert out.returncode == 2
    for word in words:
        assert word in out.stderr
    assert "Traceback" not in out.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["FILE"]


def test_cuda_without_a_gpu_is_one_sentence(tmp_path: Path) -> None:
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    out = subprocess.run(
        [COMMAND, *SMALL, "--device", "cuda"],
        capture_output=True, text=True, cwd=tmp_path, env=hidden,
    )  # fmt: skip
    assert (out.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "torch finds no GPU here" in out.stderr


def test_a_config_json_needs_its_n(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "qwen2", "vocab_size": 512}')
    out = call("overhead", "--geometry", "config.json", cwd=tmp_path)
    assert out.returncode == 2
    assert "--numeric-tokens, such as 10" in out.stderr


FAILING = """
from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.contracts import NumericLoss

@dataclass(frozen=True)
class Broken:
    name: ClassVar[str] = "broken"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    weight: float = 1.0

    def bind(self, vocabulary):
        return BrokenTerm(self, vocabulary)

class BrokenTerm(NumericLoss):
    def forward(self, numeric):
        raise RuntimeError("no such thing\\nas a broken loss")
"""


def test_a_loss_that_fails_gives_status_1_and_a_row_and_the_others_finish(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(FAILING)
    arguments = ["--losses", "broken", "--plugin", "broken.py", "--length", "16"]
    out = call(*SMALL, *arguments, "--threads", "1", cwd=tmp_path)
    assert out.returncode == 1
    assert "Failed: broken, repeat 1: RuntimeError: no such thing as a broken loss" in out.stderr
    assert "1 of 3 processes failed" in out.stderr
    assert "Traceback" not in out.stdout + out.stderr
    assert "Training overhead: tiny" in out.stdout
    assert max(len(line) for line in out.stdout.splitlines()) <= 100
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("overhead_tiny_")
    table = pd.read_csv(folder / "reports" / "tables" / "overhead_table.csv").set_index("Loss")
    assert table["Step time (ms)"].eq("failed").to_dict() == {
        "CE, stock Trainer": False, "CE": False, "broken": True,
    }  # fmt: skip


def test_the_same_command_again_has_nothing_to_do_and_prints_the_table(
    measured_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(measured_folder, tmp_path / "out")
    out = call(*flags(tiny_settings(losses={"ce": 1, "smmd": 1})), "--out", "out", cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    assert "Nothing to do: out is complete." in out.stdout
    assert "SMMD" in out.stdout[out.stdout.index("Training overhead: tiny, cpu") :]
    assert call("report", str(tmp_path / "out")).returncode == 0


def flags(settings: OverheadSettings) -> list[str]:
    """The command line that means the same."""
    words = ["overhead", "--losses", ",".join(settings.losses)]
    for name, value in settings.to_dict().items():
        if name not in ("losses", "config") and value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words
