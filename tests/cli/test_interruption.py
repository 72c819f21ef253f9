"""Ctrl-C and SIGTERM in real runs: one line, nothing goes on behind, and the same command ends
with what an undisturbed run ends with."""

import json
import os
import signal
import subprocess
import time

import pandas as pd
import psutil
import pytest

from smmd_bench.results.frames import read_run

from .conftest import COMMAND, call

RUN = (
    "train-eval --task arithmetic --losses ce,ntl --train-examples 768 --epochs 2 --no-base "
    "--validation-examples 20 --test-examples 20 --engine transformers "
    "--executor local[workers=1] --out"
)


def interrupt(when, send, cwd):
    """Start the run in a process group of its own, and send SIGINT once a line begins so; the
    status and the last line of the errors."""
    process = subprocess.Popen(
        [COMMAND, *RUN.split(), "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )
    assert process.stdout is not None
    assert any(line.startswith(when) for line in process.stdout), "the line never came"
    send(process.pid, signal.SIGINT)
    _, output = process.communicate(timeout=60)
    until = time.monotonic() + 10
    while survivors := [
        p.pid for p in psutil.process_iter() if _group(p.pid) == process.pid
    ]:
        assert time.monotonic() < until, f"processes go on: {survivors}"
        time.sleep(0.1)
    assert "Traceback" not in output
    assert not list(cwd.glob("run/failed/*"))
    return process.returncode, output.splitlines()[-1]


def _terminate_in_a_step(process, _):
    """SIGTERM to the parent alone, when the training has begun."""
    time.sleep(3)
    os.kill(process, signal.SIGTERM)


def _group(process):
    try:
        return os.getpgid(process)
    except ProcessLookupError:
        return None


@pytest.mark.engine
@pytest.mark.slow
def test_a_run_that_is_interrupted_three_times_ends_as_any_other(tmp_path):
    kept = "; what is finished is kept: the same command goes on."
    result = interrupt("train ce seed 0: 0 of 24", os.killpg, tmp_path)
    assert result == (130, f"Interrupted{kept}")
    result = interrupt("train ntl seed 0: 0 of 24", _terminate_in_a_step, tmp_path)
    assert result == (143, f"Terminated{kept}")
    result = interrupt("start engine: 0 of 1", os.killpg, tmp_path)
    assert result == (130, f"Interrupted{kept}")

    ended = call(f"{RUN} run --json", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    content = json.loads(ended.stdout)
    assert content["worked"] is True
    assert content["failed"] == {}
    assert content["skipped"] == {}
    undisturbed = call(f"{RUN} whole --quiet", cwd=tmp_path)
    assert undisturbed.returncode == 0, undisturbed.stderr
    first, other = read_run(tmp_path / "run"), read_run(tmp_path / "whole")
    pd.testing.assert_frame_equal(first.metrics, other.metrics)
    logs = [run.train_log.drop(columns="seconds") for run in (first, other)]
    pd.testing.assert_frame_equal(*logs)
