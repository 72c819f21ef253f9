"""The package works with the lowest versions that pyproject.toml allows, without torch."""

import json
import os
import subprocess
from importlib.metadata import version

import pytest
from packaging.version import Version

from scripts.write_floors import TARGET, render
from tests.arithmetic_problems import answers_of, problems
from tests.packaging.floors import floor_packages, floors
from tests.packaging.wheels import fresh_environment, wheel

pytestmark = pytest.mark.packaging

__all__ = ["wheel"]


@pytest.fixture(scope="module")
def lowest(wheel, tmp_path_factory):
    """Runs a command of an environment with the lowest versions; returns what it prints."""
    folder = tmp_path_factory.mktemp("lowest")
    commands = fresh_environment(folder / "venv", wheel, dependencies=floor_packages())
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(command, *arguments):
        return subprocess.run(
            [str(commands / command), *arguments],
            cwd=folder, check=True, capture_output=True, text=True, env=kept,
        ).stdout  # fmt: skip

    return run


def test_the_lowest_versions_are_those_of_pyproject_and_none_of_the_lock_is_below_them():
    assert TARGET.read_text(encoding="utf-8") == render(), "run scripts/write_floors.py"
    for name, least in floors().items():
        assert Version(version(name)) >= Version(least), name


def test_the_lowest_versions_are_what_is_imported(lowest):
    code = (
        "import json, sys; from importlib.metadata import version;"
        "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    )
    found = json.loads(lowest("python", "-c", code, *floors()))
    assert {n: Version(v) for n, v in found.items()} == {n: Version(v) for n, v in floors().items()}


def test_completions_are_scored_with_the_lowest_versions(lowest, tmp_path):
    file = tmp_path / "answers.jsonl"
    answers_of(problems(40, 0), 0.6, 1)[["completion"]].to_json(file, orient="records", lines=True)
    words = f"--task arithmetic --limit 40 --json --predictions {file}".split()
    said = json.loads(lowest("smmd-bench", "score", *words))
    assert "exact_match" in json.dumps(said)
    assert "arithmetic" in lowest("smmd-bench", "ls", "tasks")
