"""A sample of the injected faults of `benchmarks.faults`: nothing is lost, nothing half-written."""

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_a_command_that_meets_a_fault_and_is_called_again_gives_what_it_gives_without(tmp_path):
    words = ["--every", "150", "--processes", "2", "--commands", "train-eval,report,merge,clean"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.faults", str(tmp_path), *words],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    trials = [json.loads(line) for line in (tmp_path / "trials.jsonl").read_text().splitlines()]
    assert len(trials) > 30
    assert {trial["fault"] for trial in trials} >= {"killed", "full", "broken", "unread", "cut"}
    assert any(trial["status"] != 0 for trial in trials)
    bad = [t for t in trials if t["lost"] or t["traceback"] or t["half_written"]]
    assert not bad
