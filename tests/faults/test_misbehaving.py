"""Losses with a bug: each is recorded with its reason, and the other cells go on."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import call

PLUGIN = Path(__file__).parent / "plugins" / "misbehaving.py"
REASONS = {
    "bind-raises": "train: mine",
    "bind-exits": "train: the process ended with status 3 ",
    "work-is-rubbish": "train: 'str' object has no attribute",
    "work-dies": "train: the process ended with status 5 ",
    "work-sleeps": "train: the process said nothing for too long (--stall) and was ended",
}


@pytest.mark.engine
@pytest.mark.slow
def test_losses_that_misbehave_stop_no_other(tmp_path):
    done = call(
        "train-eval", "--task", "arithmetic[level=easy,operations=1]", "--losses",
        ",".join(("ce", "good", *REASONS)), "--plugin", PLUGIN, "--engine", "transformers",
        "--no-base", "--train-examples", "64", "--epochs", "1", "--validation-examples", "4",
        "--test-examples", "8", "--stall", "1", "--out", "run", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    said = json.loads(done.stdout)
    failed = {label.split()[2]: reason for label, reason in said["failed"].items()}
    assert failed.keys() == REASONS.keys()
    for loss, reason in REASONS.items():
        assert failed[loss].startswith(reason)
    assert {row["loss"] for row in said["metrics"]} == {"ce", "good"}
