"""The wheel holds everything, and a fresh environment finds every plugin in it."""

import subprocess
import sys
import zipfile
from importlib.metadata import entry_points

import pytest

from smmd_bench.plugin_system.registry import GROUPS
from tests.packaging.wheels import ROOT, fresh_environment, source_files, wheel

pytestmark = pytest.mark.packaging

__all__ = ["wheel"]

PACKAGES = {
    "smmd_bench": "smmd_bench",
    "tasks": "smmd_bench/tasks",
    "plugins": "smmd_bench/plugins",
    "reports": "smmd_bench/reports",
}


@pytest.fixture(scope="module")
def fresh_python(wheel, tmp_path_factory):
    return fresh_environment(tmp_path_factory.mktemp("fresh"), wheel) / "python"


def test_the_wheel_holds_the_source_files_and_no_others(wheel):
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {
        f"{package}/{file}"
        for folder, package in PACKAGES.items()
        for file in source_files(ROOT / folder)
    }
    assert packed == wanted
    for kind in ("safetensors", "jinja", "yaml", "csv", "typed"):  # data of packages are among them
        assert any(name.endswith(kind) for name in packed)


def test_a_fresh_environment_finds_every_plugin_and_has_the_command(fresh_python, tmp_path):
    def output(*words):
        return subprocess.run(
            words, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.splitlines()

    code = (
        "import smmd_bench; from smmd_bench.plugin_system import registry as r;"
        "print(smmd_bench.__file__);"
        "print([(g, e.name, e.error) for g in r.GROUPS for e in r.entries(g)])"
    )
    file, found = output(fresh_python, "-c", code)
    assert str(fresh_python.parent.parent) in file
    here = [
        (g, name, None)
        for g in GROUPS
        for name in sorted(e.name for e in entry_points(group=f"smmd_bench.{g}"))
    ]
    assert eval(found) == here
    models = output(fresh_python.parent / "smmd-bench", "ls", "models")
    assert "builtin/tiny" in " ".join(models)


def test_a_folder_is_not_importable_by_its_own_name():
    out = subprocess.run(
        [sys.executable, "-c", "import tasks"], cwd=ROOT, capture_output=True, text=True
    )
    assert "import this package as smmd_bench.tasks" in out.stderr
