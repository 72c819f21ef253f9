"""The package of examples, installed beside this project's wheel as a stranger would have them."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from smmd_bench.results.frames import read_run
from tests.packaging.wheels import ROOT, build_wheel, fresh_environment, wheel

pytestmark = pytest.mark.packaging

__all__ = ["wheel"]

PROJECT = ROOT / "examples" / "smmd-bench-celsius"
Installed = Callable[..., str]


@pytest.fixture(scope="module")
def commands(wheel, tmp_path_factory):
    """The commands of an environment with both wheels."""
    folder = tmp_path_factory.mktemp("celsius")
    return fresh_environment(folder / "venv", wheel, build_wheel(PROJECT, folder / "wheel"))


@pytest.fixture
def installed(commands, tmp_path):
    """Runs a command of that environment, far from the source tree; returns what it prints."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = {**kept, "SMMD_BENCH_CACHE": str(tmp_path / "cache")}

    def run(command, *arguments):
        done = subprocess.run(
            [str(commands / command), *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_its_plugins_are_listed_and_imported_from_their_wheel(installed, commands):
    code = "import smmd_bench, smmd_bench_celsius as c; print(smmd_bench.__file__, c.__file__)"
    files = installed("python", "-c", code).split()
    assert len(files) == 2
    found = json.loads(installed("smmd-bench", "ls", "--json"))
    for group, name in (("tasks", "temperature"), ("losses", "squared_emd")):
        plugin = next(plugin for plugin in found[group] if plugin["name"] == name)
        assert plugin["error"] is None
        assert plugin["origin"]["distribution"] == "smmd-bench-celsius"
        files.append(plugin["origin"]["file"])
    assert all(Path(file).is_relative_to(commands.parent) for file in files)


def test_they_keep_their_contracts(installed):
    out = installed("smmd-bench", "validate", "temperature", "squared_emd")
    assert "task temperature" in out
    assert "loss squared_emd" in out
    assert "✗" not in out


def test_they_make_a_run_with_a_table(installed, tmp_path):
    out = installed(
        "smmd-bench", "train-eval", "--task", "temperature", "--losses", "ce,squared_emd",
        "--engine", "transformers", "--train-examples", "64", "--epochs", "1",
        "--validation-examples", "16", "--test-examples", "16", "--out", "run",
    )  # fmt: skip
    assert "squared_emd" in out
    assert list((tmp_path / "run" / "reports" / "tables").glob("*.csv"))
    metrics = read_run(tmp_path / "run").metrics
    assert set(metrics["loss"]) == {"base", "ce", "squared_emd"}
    assert metrics["value"][metrics["metric"] == "exact_match"].between(0, 100).all()
