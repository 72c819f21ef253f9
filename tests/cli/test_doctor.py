"""`doctor`: what it finds, and every stage once on the built-in checkpoint."""

import json
import time
from itertools import islice

import pandas as pd
import pytest

from smmd_bench.cli import doctor
from smmd_bench.maintenance.smoke import PARTS

from .conftest import run_here


@pytest.mark.engine
@pytest.mark.slow
def test_every_stage_runs_and_the_findings_say_how(tmp_path):
    content = json.loads(run_here("doctor --gpu --json", cwd=tmp_path).stdout)
    findings = pd.DataFrame(content["findings"]).set_index("name")
    assert findings.index.is_unique
    assert set(findings["state"]) == {"ok"}
    assert findings["remedy"].isna().all()

    for name in ("lora bfloat16", "full float32"):
        text = findings.loc[name, "text"]
        first, *_ = text.splitlines()
        assert first.startswith(name.replace(" ", " in ") + ": trained in ")
        assert first.endswith("0 of 64 answers differ between batches of 1 and of all")
        *parts, last = PARTS
        seconds = findings.loc[[f"{name} {part}" for part in parts], "text"]
        assert seconds.str.fullmatch(r"\d+\.\d s(, \d+\.\d\d GB)?").all()
        assert seconds.str.endswith("GB").to_list() == [p == "training" for p in parts]
        assert f"{name} {last}" not in findings.index
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
    (stage,) = doctor.try_stages("lora", "float16", "transformers")
    assert stage.state == "problem"
    assert "float16" in stage.text.splitlines()[-1]
    assert "VLLM_USE_V2_MODEL_RUNNER=0" in stage.remedy


SLOW = """
import time
from smmd_bench.run import pipeline
def train(cell, run):
    print("half of a progress bar", end="", flush=True)
    time.sleep({sleeps})
    raise SystemExit("a library said why")
pipeline.train = train
"""


@pytest.fixture
def slow_training(tmp_path, monkeypatch):
    """`slow_training(60)`: a training of the stages' process that sleeps, and then fails."""

    def write(sleeps):
        (tmp_path / "sitecustomize.py").write_text(SLOW.format(sleeps=sleeps))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return write


def test_a_part_is_shown_before_the_next_has_ended_and_what_is_too_slow_says_where(
    slow_training,
):
    slow_training(60)
    began = time.monotonic()
    findings = doctor.try_stages("lora", "bfloat16", "transformers", seconds=10)
    loading = next(findings)
    assert (loading.name, loading.state) == ("lora bfloat16 loading", "ok")
    assert time.monotonic() - began < 10

    (stage,) = findings
    assert time.monotonic() - began < 50
    assert (stage.name, stage.state) == ("lora bfloat16", "problem")
    first, *log = stage.text.splitlines()
    assert first == (
        "it took more than 10 s: training was running, and loading had ended"
    )
    stack = log[log.index("half of a progress barStack (most recent call first):") :]
    assert stack[1].endswith("in train")


def test_a_process_that_fails_is_told_from_one_that_is_slow(slow_training):
    slow_training(0)
    _, stage = doctor.try_stages("lora", "bfloat16", "transformers")
    assert stage.state == "problem"
    assert "it took" not in stage.text
    assert stage.text.endswith("half of a progress bara library said why")

    (stage,) = doctor.try_stages("lora", "bfloat16", "transformers", seconds=0.1)
    assert stage.text.startswith("it took more than 0 s: loading was running, and")


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
