"""`doctor`: what it finds, and every stage once on the built-in checkpoint."""

import json

import pytest

from smmd_bench.cli import doctor

from .conftest import run_here


@pytest.mark.engine
@pytest.mark.slow
def test_every_stage_runs_and_the_findings_say_how(tmp_path):
    content = json.loads(run_here("doctor", "--gpu", "--json", cwd=tmp_path).stdout)
    found = {finding["name"]: finding for finding in content["findings"]}
    assert {f["state"] for f in found.values()} == {"ok"}
    assert all(f["remedy"] is None for f in found.values())
    for name in ("lora bfloat16", "full float32"):
        first, *seen = found[name]["text"].splitlines()
        assert first.startswith(name.replace(" ", " in ") + ": trained in ")
        assert sum(line.startswith("canary of ") for line in seen) == 3  # base, epoch, best
        assert any("odel runner" in line.lower() for line in seen)


def test_a_crash_is_a_problem():
    crash = doctor.try_code("x", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "mend")
    assert (crash.state, crash.remedy) == ("problem", "mend")
    raises = doctor.try_code("x", "raise ImportError('libcudart.so')", "mend")
    assert "ImportError: libcudart.so" in raises.text
    assert doctor.try_code("x", "while True: pass", "mend", seconds=1).state == "note"


def test_a_stage_that_fails_shows_the_end_of_its_log():
    found = doctor.try_stages("lora", "float16", "transformers")
    assert found.state == "problem"
    assert "float16" in found.text.splitlines()[-1]
    assert "VLLM_USE_V2_MODEL_RUNNER=0" in found.remedy


@pytest.mark.parametrize(
    ("driver", "torch", "state", "said"),
    [
        ("580.65.06", "2.13.0, for 13.0, NVIDIA H100", "ok", "NVIDIA driver 580.65.06"),
        ("535.183.01", "2.13.0, for 13.0", "problem", "it needs 580 or newer"),
        ("535.183.01", "2.13.0+cpu, for the CPU", "problem", "is a build for the CPU"),
    ],
)
def test_a_driver_that_torch_cannot_use_is_named(driver, torch, state, said, tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho {driver}\necho {driver}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert doctor.find_driver() == driver
    found = doctor.check_driver(driver, torch)
    assert found.state == state
    assert said in found.text
    assert (found.remedy is None) == (state == "ok")


def test_without_a_driver_nothing_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.find_driver() is None
