"""The package works with the lowest versions that pyproject.toml allows, without torch.

The environment has them of what reports need; what those packages need besides has the version of
the lock. It takes 20 to 60 seconds and 600 MB.
"""

import json
import re
import subprocess
import sys
from importlib.metadata import version

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from scripts.write_floors import TARGET, render
from tests.arithmetic_problems import answers_of, problems
from tests.packaging.wheels import ROOT, command_runner, fresh_environment, wheel

pytestmark = pytest.mark.packaging

__all__ = ["wheel"]


def pinned(file):
    """The versions of a file of requirements by name."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", file.read_text(), re.MULTILINE))


FLOORS = pinned(TARGET)


@pytest.fixture(scope="module")
def lowest(wheel, tmp_path_factory):
    """Runs a command of an environment with the lowest versions; returns what it prints."""
    folder = tmp_path_factory.mktemp("lowest")
    packages, constraints = folder / "packages", folder / "constraints.txt"
    # pydantic pins its own
    free = {canonicalize_name(name) for name in FLOORS} | {"pydantic-core"}
    locked = pinned(ROOT / "requirements-cpu.lock").items()
    constraints.write_text(
        "".join(f"{n}=={v}\n" for n, v in locked if canonicalize_name(n) not in free)
    )
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--target", packages, "--retries", "1",
        "--only-binary", ":all:", "--no-binary", "rouge-score", "--no-build-isolation",
        "-r", TARGET, "-c", constraints,
    ]  # fmt: skip
    process = subprocess.run(command, capture_output=True, text=True)
    if (
        "NewConnectionError" in process.stderr
        or "NameResolutionError" in process.stderr
    ):
        pytest.skip("the lowest versions cannot be installed: there is no network")
    assert process.returncode == 0, process.stdout + process.stderr
    return command_runner(
        fresh_environment(folder / "venv", wheel, dependencies=packages), folder
    )


def test_the_lowest_versions_are_those_of_pyproject_and_none_of_the_lock_is_below_them():
    assert TARGET.read_text(encoding="utf-8") == render(), "run scripts/write_floors.py"
    for name, least in FLOORS.items():
        assert Version(version(name)) >= Version(least), name


def test_completions_are_scored_with_the_lowest_versions(lowest, tmp_path):
    code = (
        "import json, sys; from importlib.metadata import version;"
        "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    )
    scores = json.loads(lowest("python", "-c", code, *FLOORS))
    assert {n: Version(v) for n, v in scores.items()} == {
        n: Version(v) for n, v in FLOORS.items()
    }

    file = tmp_path / "answers.jsonl"
    answers = answers_of(problems(40, 0), 0.6, 1).assign(id=range(40))
    answers[["id", "completion"]].to_json(file, orient="records", lines=True)
    words = f"--task arithmetic --limit 40 --json --predictions {file}".split()
    assert "exact_match" in json.dumps(
        json.loads(lowest("smmd-bench", "score", *words))
    )
