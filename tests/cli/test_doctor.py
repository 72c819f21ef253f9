"""`doctor`: what it finds, and every stage once on the built-in checkpoint."""

import json
from itertools import islice

import pandas as pd
import pytest

from smmd_bench.cli import doctor

from .conftest import run_here


@pytest.mark.engine
@pytest.mark.slow
def test_every_stage_runs_and_the_findings_say_how(tmp_path):
    content = json.loads(run_here("doctor --gpu --json", cwd=tmp_path).stdout)
    findings = pd.DataFrame(content["findings"]).set_index("name")
    assert set(findings["state"]) == {"ok"}
    assert findings["remedy"].isna().all()

    for name in ("lora bfloat16", "full float32"):
        text = findings.loc[name, "text"]
        first, *_ = text.splitlines()
        assert first.startswith(name.replace(" ", " in ") + ": trained in ")
        assert first.endswith("0 of 64 answers differ between batches of 1 and of all")
        # base, epoch, best
        assert text.count("\ncanary of ") == 3
        assert "model runner" in text.lower()


def test_a_crash_is_a_problem():
    crash = doctor.try_code(
        "x", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "mend"
    )
    assert crash.state == "problem"
    assert crash.remedy == "mend"
    raises = doctor.try_code("x", "raise ImportError('libcudart.so')", "mend")
    assert "ImportError: libcudart.so" in raises.text
    assert doctor.try_code("x", "while True: pass", "mend", seconds=1).state == "note"


def test_a_stage_that_fails_shows_the_end_of_its_log():
    stage = doctor.try_stages("lora", "float16", "transformers")
    assert stage.state == "problem"
    assert "float16" in stage.text.splitlines()[-1]
    assert "VLLM_USE_V2_MODEL_RUNNER=0" in stage.remedy
    assert (
        doctor.try_stages("lora", "float16", "x", 0.1).text == "it took more than 0 s"
    )


TORCH = """
__version__ = "2.13.0"
class version: cuda, hip = {}, None
class cuda: device_count, get_device_name = lambda: 1, [].pop
"""


@pytest.mark.parametrize(
    ("driver", "build", "state", "said"),
    [
        ("580.65.06", "'13.0'", "ok", "NVIDIA driver 580.65.06"),
        ("535.183.01", "'13.0'", "problem", "torch needs 580 or newer"),
        ("535.183.01", "None", "problem", "is a build for the CPU"),
        ("535.183.01", "no torch", "problem", "vLLM: it cannot be used"),
    ],
)
def test_a_driver_that_torch_cannot_use_is_named(
    driver, build, state, said, tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.find_driver() is None

    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho {driver}\necho {driver}\n")
    program.chmod(0o755)
    (tmp_path / "torch.py").write_text(TORCH.format(build))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    _, torch, stage = islice(doctor.examine(), 3)
    assert torch.state == "problem"
    assert stage.state == state
    assert said in f"{stage.name}: {stage.text}"
    assert (stage.remedy is None) == (state == "ok")
