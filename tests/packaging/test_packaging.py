"""The wheel holds everything; a fresh environment finds its plugins and those of the example
package, which make a run there."""

import json
import subprocess
import sys
import zipfile
from importlib.metadata import distributions, entry_points
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from smmd_bench.plugin_system.registry import GROUPS
from smmd_bench.results.frames import read_run
from tests.packaging.wheels import (
    ROOT,
    build_wheel,
    command_runner,
    fresh_environment,
    source_files,
    wheel,
)

pytestmark = pytest.mark.packaging

__all__ = ["wheel"]

PACKAGES = {
    "smmd_bench": "smmd_bench",
    "tasks": "smmd_bench/tasks",
    "plugins": "smmd_bench/plugins",
    "reports": "smmd_bench/reports",
}
OF_THE_EXAMPLE = {("tasks", "temperature"), ("losses", "squared_emd")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fresh")


@pytest.fixture(scope="module")
def installed(wheel, folder):
    """Runs a command of an environment with both wheels, far from the source tree."""
    example = build_wheel(ROOT / "examples/smmd-bench-celsius", folder / "wheel")
    return command_runner(fresh_environment(folder / "venv", wheel, example), folder)


def test_the_wheel_holds_the_source_files_and_no_others(wheel):
    packed = {
        name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name
    }
    wanted = {
        f"{package}/{file}"
        for folder, package in PACKAGES.items()
        for file in source_files(ROOT / folder)
    }
    assert packed == wanted
    # data of packages are among them
    for kind in ("safetensors", "jinja", "yaml", "csv", "typed"):
        assert any(name.endswith(kind) for name in packed)


@pytest.mark.parametrize("extra", ["cpu", "gpu"])
def test_an_extra_takes_what_its_lock_has(wheel, extra):
    (built,) = distributions(path=[str(wheel)])
    pinned = {}
    for line in built.requires:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is not None and marker.evaluate({"extra": extra}):
            pinned[requirement.name] = requirement.specifier

    locked = {}
    for line in (ROOT / f"requirements-{extra}.lock").read_text().splitlines():
        name, _, version = line.partition("==")
        locked[name] = version
    assert {"torch"} < set(pinned)
    for name, specifier in pinned.items():
        assert specifier.contains(locked[name]), name


def test_a_fresh_environment_finds_every_plugin_and_has_the_command(installed, folder):
    code = "import smmd_bench, smmd_bench_celsius as c; print(smmd_bench.__file__, c.__file__)"
    assert all(
        Path(f).is_relative_to(folder) for f in installed("python", "-c", code).split()
    )

    listed = json.loads(installed("smmd-bench", "ls", "--json"))
    errors = {
        (g, plugin["name"]): plugin["error"] for g in GROUPS for plugin in listed[g]
    }
    registered = {
        (g, e.name) for g in GROUPS for e in entry_points(group=f"smmd_bench.{g}")
    }
    assert errors == dict.fromkeys(registered | OF_THE_EXAMPLE)
    assert "builtin/tiny" in installed("smmd-bench", "ls", "models")


def test_the_plugins_of_the_example_keep_their_contracts_and_make_a_run(
    installed, folder
):
    assert "✗" not in installed("smmd-bench", "validate", "temperature", "squared_emd")
    installed(
        "smmd-bench", "train-eval", "--task", "temperature", "--losses", "ce,squared_emd",
        "--engine", "transformers", "--train-examples", "64", "--epochs", "1",
        "--validation-examples", "16", "--test-examples", "16", "--out", "run",
    )  # fmt: skip
    assert list((folder / "run/reports/tables").glob("*.csv"))

    metrics = read_run(folder / "run").metrics
    assert set(metrics["loss"]) == {"base", "ce", "squared_emd"}
    assert metrics["value"][metrics["metric"] == "exact_match"].between(0, 100).all()


def test_a_folder_is_not_importable_by_its_own_name():
    out = subprocess.run(
        [sys.executable, "-c", "import tasks"], cwd=ROOT, capture_output=True, text=True
    )
    assert "import this package as smmd_bench.tasks" in out.stderr
