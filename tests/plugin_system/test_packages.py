"""Plugins of packages from outside: none takes a first-party name, and a run names its package."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import smmd_bench
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.experiment.provenance import library_versions
from smmd_bench.plugin_system import registry
from smmd_bench.plugin_system.listing import listing
from smmd_bench.run.cell_json import describe_cells
from tests.conftest import expect_user_error

from .loss_file import LOSS


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install packages with one loss each, as pip does."""
    caches = (registry.points, registry._registered, registry.load_loss)

    def install(package, *, entry_point, name=None):
        metadata = tmp_path / f"{package}-1.5.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5"
        )
        point = f"[smmd_bench.losses]\n{entry_point} = {package}:Mine\n"
        (metadata / "entry_points.txt").write_text(point)
        text = LOSS.replace('"mine"', f'"{name or entry_point}"')
        (tmp_path / f"{package}.py").write_text(text)
        importlib.invalidate_caches()
        for cached in caches:
            cached.cache_clear()

    monkeypatch.syspath_prepend(str(tmp_path))
    yield install
    monkeypatch.undo()
    for package in ("mylab", "theirs"):
        sys.modules.pop(package, None)
    for cached in caches:
        cached.cache_clear()


def test_a_plugin_with_the_name_of_a_first_party_one_is_refused_with_its_package(
    install,
):
    install("mylab", entry_point="ce")
    with expect_user_error(r"loss 'ce' of smmd-bench cannot be used: mylab 1\.5 names"):
        registry.load_loss("ce")

    assert registry.load_loss("smmd").name == "smmd"
    for whole in (False, True):
        errors = {
            loss.name: loss.error
            for loss in listing("losses", whole=whole)
            if loss.error
        }
        assert [*errors] == ["ce"]
        assert "mylab 1.5 names one so, too" in errors["ce"]


def test_two_packages_with_plugins_of_one_name_are_refused(install):
    install("mylab", entry_point="huber")
    install("theirs", entry_point="huber")
    with expect_user_error(r"of mylab cannot be used: theirs 1\.5 names one so, too"):
        registry.load_loss("huber")


def test_a_class_with_the_name_of_a_first_party_one_is_refused(install):
    install("mylab", entry_point="huber", name="ce")
    with expect_user_error("of mylab cannot be used: its class has the name 'ce'"):
        registry.load_loss("huber")
    assert type(registry.load_loss("ce")).__module__ == "smmd_bench.plugins.losses.ce"


def test_a_plugin_file_of_ones_own_takes_any_name(install, tmp_path):
    install("mylab", entry_point="ce")
    (tmp_path / "mine.py").write_text(LOSS.replace('"mine"', '"ce"'))
    registry.load_plugin_file(tmp_path / "mine.py")
    assert type(registry.load_loss("ce")).__name__ == "Mine"
    assert registry.package_of("losses", "ce") is None


def test_a_run_names_the_package_of_a_plugin_from_outside(install):
    install("mylab", entry_point="huber")
    cells = Experiment(("arithmetic",), ("ce", "huber")).cells
    packages = {cell["loss"]: cell.get("packages") for cell in describe_cells(cells)}
    assert packages == {"base": None, "ce": None, "huber": {"loss huber": "mylab 1.5"}}
    assert library_versions()["mylab"] == "1.5"


def test_a_harness_of_another_clone_is_refused_with_both_folders(tmp_path):
    harness = Path(smmd_bench.__file__).parent
    ignored = shutil.ignore_patterns("builtin", "__pycache__")
    shutil.copytree(harness, tmp_path / "smmd_bench", ignore=ignored)
    code = "import sys; from smmd_bench.cli import main; sys.argv = ['smmd-bench', 'ls']; main()"
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
    )

    assert out.returncode == 2, out.stderr
    assert f"smmd_bench comes from {tmp_path}, and its " in out.stderr
    assert f"from {harness.parent}: unset PYTHONPATH" in out.stderr
    assert out.stderr.count("\n") == 1
