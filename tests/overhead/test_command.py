"""`smmd-bench overhead` as it is called."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pandas as pd
import pytest

from smmd_bench.errors import UserError
from tests.in_process import call
from tests.overhead.conftest import tiny_settings
from tests.publishing.published import write_plugin

SMALL = ["overhead", "--geometry", "tiny", "--steps", "3", "--drop", "1", "--repeats", "1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--geometry none/config.json", "Unknown geometry.*path of a config.json"),
        ("--geometry config.json", "--numeric-tokens, such as 10"),
        ("--losses smd", "did you mean smmd"),
        ("--losses smmd[sigma=0]", "sigma must be from 0.001"),
        ("--losses ,", "--losses is empty: give at least one LOSS"),
        ("--losses ntil --numeric-tokens 5", "ntil cannot be measured here"),
        ("--steps 20", "--drop 20 leaves none of 20 steps"),
        ("--device gpu", "'gpu' is not one of"),
        ("--plugin none.py", "does not exist"),
        ("--out FILE", "FILE"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(words, said, tmp_path):
    (tmp_path / "FILE").touch()
    (tmp_path / "config.json").write_text('{"model_type": "qwen2", "vocab_size": 512}')
    with pytest.raises((UserError, click.ClickException), match=said):
        call(["overhead", *words.split()], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"FILE", "config.json"}


def test_cuda_without_a_gpu_is_one_sentence_with_status_2(tmp_path):
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    command = [str(Path(sys.executable).parent / "smmd-bench"), *SMALL, "--device", "cuda"]
    out = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=hidden)
    assert (out.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "torch finds no GPU here" in out.stderr
    assert "Traceback" not in out.stderr


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


@pytest.mark.slow
def test_a_loss_that_fails_gives_status_1_and_a_row_and_the_others_finish(tmp_path):
    (tmp_path / "broken.py").write_text(FAILING)
    words = ["--losses", "broken", "--plugin", "broken.py", "--length", "16", "--threads", "1"]
    out = call([*SMALL, *words], tmp_path)
    assert out.status == 1
    said = " ".join(out.output.split())
    assert "Failed: broken, repeat 1: RuntimeError: no such thing as a broken loss" in said
    assert "1 of 3 processes failed" in said
    assert "Traceback" not in said
    assert "Training overhead: tiny" in out.stdout
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("overhead_tiny_")
    table = pd.read_csv(folder / "reports" / "tables" / "overhead_table.csv").set_index("Loss")
    assert table["Step time (ms)"].eq("failed").to_dict() == {
        "CE, stock Trainer": False, "CE": False, "broken": True,
    }  # fmt: skip


def test_the_same_command_again_has_nothing_to_do_and_prints_the_table(measured_folder, tmp_path):
    shutil.copytree(measured_folder, tmp_path / "out")
    words = flags(tiny_settings(losses={"ce": 1, "smmd": 1}))
    out = call([*words, "--out", "out"], tmp_path)
    assert out.status == 0, out.output
    assert "Nothing to do: out is complete." in out.output
    assert "SMMD" in out.stdout[out.stdout.index("Training overhead: tiny, cpu") :]
    assert call(["report", "out"], tmp_path).status == 0
    figure = write_plugin(tmp_path / "figure.py", mine="raise RuntimeError('no font')")
    out = call([*words, "--out", "out", "--plugin", str(figure)], tmp_path)
    assert out.status == 1
    assert "Failed: report mine: RuntimeError: no font" in out.stderr


def flags(settings):
    """The command line that means the same."""
    words = ["overhead", "--losses", ",".join(settings.losses)]
    for name, value in settings.to_dict().items():
        if name not in ("losses", "config") and value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words
