"""The lowest versions that pyproject.toml allows make the same reports as those of the lock.

Both environments have no torch: what reads a run, reports, compares and scores needs none.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest
from packaging.version import Version

from scripts.write_floors import TARGET, render
from tests.packaging.floors import floor_packages, floors
from tests.packaging.wheels import ROOT, fresh_environment, wheel

pytestmark = pytest.mark.packaging

__all__ = ["wheel"]

TABLE = re.compile(r"<table.*?</table>", re.DOTALL)


def python_with(folder, wheel, dependencies):
    return fresh_environment(folder, wheel, dependencies=dependencies) / "python"


@pytest.fixture(scope="module")
def lowest(wheel, tmp_path_factory):
    """The Python of an environment with the lowest versions."""
    return python_with(tmp_path_factory.mktemp("lowest"), wheel, floor_packages())


@pytest.fixture(scope="module")
def locked(wheel, tmp_path_factory):
    """The Python of an environment with the versions of the lock, without torch."""
    folder = tmp_path_factory.mktemp("locked")
    (folder / "packages").mkdir()
    for site in (Path(place) for place in sys.path if place.endswith("site-packages")):
        for package in site.iterdir():
            link = folder / "packages" / package.name
            if not package.name.startswith(("torch", "__", "smmd_bench")) and not link.exists():
                link.symlink_to(package)
    return python_with(folder / "venv", wheel, folder / "packages")


@pytest.fixture(scope="module")
def made(lowest, locked, tmp_path_factory):
    """What `report_path` writes and prints with the lowest versions, and with the lock's."""
    folders = tmp_path_factory.mktemp("lowest_run"), tmp_path_factory.mktemp("locked_run")
    running = []
    for python, folder in zip((lowest, locked), folders, strict=True):
        (folder / "tests" / "packaging").mkdir(parents=True)
        needed = (*(ROOT / "tests").glob("*.py"), *(ROOT / "tests" / "packaging").glob("*.py"))
        for file in needed:
            shutil.copy(file, folder / file.relative_to(ROOT))
        with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
            command = [str(python), "-m", "tests.packaging.report_path"]
            running.append(
                subprocess.Popen(command, cwd=folder, env=environment(), stdout=out, stderr=err)
            )
    codes = [process.wait() for process in running]
    said = [(folder / "err").read_text()[-4000:] for folder in folders]
    assert codes == [0, 0], "\n\n".join(said)
    return folders


def environment():
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "OMP_NUM_THREADS": "1"}


def test_the_lowest_versions_are_those_of_pyproject_and_none_of_the_lock_is_below_them():
    assert TARGET.read_text(encoding="utf-8") == render(), "run scripts/write_floors.py"
    for name, lowest in floors().items():
        assert Version(version(name)) >= Version(lowest), name


def test_the_lowest_versions_are_what_is_imported(lowest, tmp_path):
    code = (
        "import json, sys; from importlib.metadata import version; from importlib.util import "
        "find_spec; assert find_spec('torch') is None and find_spec('transformers') is None;"
        "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    )
    out = subprocess.run(
        [str(lowest), "-c", code, *floors()], cwd=tmp_path, check=True, capture_output=True,
        text=True, env=environment(),
    ).stdout  # fmt: skip
    found = json.loads(out)
    assert {name: Version(v) for name, v in found.items()} == {
        name: Version(v) for name, v in floors().items()
    }


def test_tables_data_and_values_are_the_same(made):
    lowest, locked = map(files, made)
    assert [*lowest] == [*locked]
    at_least = {".csv": 30, ".tex": 15, ".md": 15, ".json": 100, ".png": 10, "out": 1}
    for kind, least in at_least.items():
        assert sum(name.endswith(kind) for name in lowest) >= least, kind
    # what is not the same, and what follows from versions of libraries
    of_versions = ("manifest.json", ".stamp", ".html", ".png", ".pdf", ".svg", ".parquet")
    for name in lowest:
        if not name.endswith(of_versions):
            assert lowest[name].read_bytes() == locked[name].read_bytes(), name
        if name.endswith("scores.parquet"):
            frames = [pd.read_parquet(of[name]) for of in (lowest, locked)]
            pd.testing.assert_frame_equal(*frames, obj=name)
    (page,) = (name for name in lowest if name.endswith(".html"))
    tables = [TABLE.findall(of[page].read_text()) for of in (lowest, locked)]
    assert len(tables[0]) > 1
    assert tables[0] == tables[1]


def test_reports_that_need_torch_say_so(made):
    said = (made[0] / "out").read_text().splitlines()
    assert "loss_shapes: torch is not installed" in said
    why = (
        "The loss 'smmd' of smmd-bench cannot be used: ModuleNotFoundError: No module named 'torch'"
    )
    for name in ("bandwidth_table", "sigma_sensitivity"):
        assert f"{name}: {why}" in said


def files(folder):
    """What was made, by path; the copied tests are not."""
    found = (file for file in sorted(folder.rglob("*")) if file.is_file())
    names = {file.relative_to(folder).as_posix(): file for file in found}
    return {k: v for k, v in names.items() if not k.startswith("tests/") and k != "err"}
