"""The wheel holds everything, and a fresh environment finds every plugin in it."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from smmd_bench.registry import GROUPS

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            str(folder),
            str(source),
        ],
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def fresh_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and, by path only, this one's dependencies."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "-q",
            "--no-deps",
            "--no-index",
            str(wheel),
        ],
        check=True,
    )
    site = next((folder / "lib").glob("python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_every_source_file_is_in_the_wheel(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    for folder, package in (
        ("smmd_bench", "smmd_bench"),
        ("tasks", "smmd_bench/tasks"),
        ("plugins", "smmd_bench/plugins"),
        ("reports", "smmd_bench/reports"),
    ):
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert f"{package}/{file.relative_to(ROOT / folder)}" in packed


def test_a_fresh_environment_finds_every_plugin(fresh_python: Path, tmp_path: Path) -> None:
    code = (
        "import smmd_bench; from smmd_bench import registry as r; print(smmd_bench.__file__);"
        "print([(g, e.name, e.error) for g in r.GROUPS for e in r.entries(g)])"
    )
    out = subprocess.run(
        [str(fresh_python), "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert str(fresh_python.parent.parent) in out[0]
    here = [
        (g, name, None)
        for g in GROUPS
        for name in sorted(e.name for e in entry_points(group=f"smmd_bench.{g}"))
    ]
    assert eval(out[1]) == here


def test_the_command_is_installed(fresh_python: Path, tmp_path: Path) -> None:
    command = fresh_python.parent / "smmd-bench"
    out = subprocess.run(
        [str(command), "ls", "models"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert "builtin/tiny" in out


def test_a_folder_is_not_importable_by_its_own_name() -> None:
    out = subprocess.run(
        [sys.executable, "-c", "import tasks"], cwd=ROOT, capture_output=True, text=True
    )
    assert "import this package as smmd_bench.tasks" in out.stderr


def test_importing_the_package_brings_in_no_torch() -> None:
    code = (
        "import sys, smmd_bench, smmd_bench.cli;"
        "print('torch' in sys.modules, 'pandas' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.split() == ["False", "False"]
