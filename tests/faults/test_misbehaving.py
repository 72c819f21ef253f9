"""Plugins with a bug: the reason of a loss is recorded, and the other cells go on; the line of a
task is named before anything trains."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import call

PLUGIN = Path(__file__).parent / "plugins" / "misbehaving.py"
TASKS = PLUGIN.with_name("misbehaving_tasks.py")
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("examples-raise", "in examples (ValueError: mine)"),
        ("identity-raises", "in identity (ValueError: mine)"),
        ("metrics-raise", "metrics-raise.metrics() fails (ValueError: mine)"),
        ("parse-raises", "cannot be scored (ValueError: mine)"),
        ("parse-exits", "in parse (SystemExit: 3)"),
        ("examples-are-none", "examples('test') gives None, and a list of Example is expected"),
        ("examples-are-text", "examples('test') gives '1 + 0 =', and a list of Example is"),
        ("prompts-are-numbers", "examples('test') gives 0, and a text as uid is expected"),
        ("identity-is-none", "identity('test') gives None, and a mapping of texts and numbers"),
        ("identity-is-an-object", "and a mapping of texts and numbers is expected"),
        ("metrics-are-none", "metrics() gives None, and at least one metric is expected"),
        ("metrics-are-empty", "metrics() gives (), and at least one metric is expected"),
        ("metrics-are-text", "metrics() gives 'exact_match', and metrics only"),
        ("parse-gives-text", "cannot be scored (AttributeError: 'str' object has no attribute"),
        ("statistics-are-text", "cannot be scored (ValueError: could not convert string"),
    ],
)
def test_a_task_that_misbehaves_is_one_sentence_and_nothing_trains(task, said, tmp_path):
    done = call(
        "train-eval", "--task", task, "--losses", "ce", "--plugin", TASKS, "--engine",
        "transformers", "--out", "run", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    (error,) = (line for line in done.stderr.splitlines() if line.startswith("Error: "))
    assert said in error
    assert "Traceback" not in done.stderr
    assert not [*tmp_path.glob("run/cells/*/train.json")]
