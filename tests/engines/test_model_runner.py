"""The tests of both engines again, with vLLM's Model Runner V2, which a GPU runs by default."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("which", ["not slow", "slow"], ids=["text", "pictures"])
def test_the_engines_pass_with_model_runner_v2(which):
    """In a process of its own: vLLM reads which runner and which Triton it has when imported."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        which,
    ]
    files = [
        Path(__file__).with_name(name) for name in ("test_engines.py", "test_starts.py")
    ]
    environment = {**os.environ, "VLLM_USE_V2_MODEL_RUNNER": "1"}
    process = subprocess.run(
        [*command, *files], env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout[-4000:]
