"""Wheels built from the working tree, and fresh environments to install them in.

The environments have this one's dependencies by path only: a `.pth` file in a folder that is itself
on the path that way is not read, so the editable install of this project is not among them.
"""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The wheel of this project, built once for all processes of a test run. Only to be read."""
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        folder = folder.parent  # every worker has a folder of its own in it
    with FileLock(folder / "wheel.lock"):
        built = sorted((folder / "wheel").glob("*.whl"))
        return built[0] if built else build_wheel(ROOT, folder / "wheel")


def source_files(project: Path) -> list[Path]:
    """The files of a project, or of a part of one, that git tracks or would track."""
    command = [
        "git",
        "-C",
        str(project),
        "ls-files",
        "-z",
        "-c",
        "-o",
        "--exclude-standard",
    ]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    names = filter(None, listed.stdout.split("\0"))
    return sorted({Path(name) for name in names if (project / name).is_file()})


def build_wheel(project: Path, folder: Path) -> Path:
    """Build a project's sdist from a copy of its source files, and of that its wheel, into
    `folder`, as `make release` does."""
    source = folder / "source"
    for name in source_files(project):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((project / name).read_bytes())
    _run("-m", "build", "--no-isolation", "--outdir", folder, source)
    return next(folder.glob("*.whl"))


def fresh_environment(
    folder: Path, *wheels: Path, dependencies: Path | None = None
) -> Path:
    """A virtual environment with these wheels; returns its folder of commands.

    dependencies: the folder that has all others (None: this environment's own).
    """
    venv.create(folder, with_pip=False)
    commands = folder / "bin"
    _run(
        "-m", "pip", "--python", commands / "python", "install", "-q", "--no-deps", "--no-index",
        *wheels,
    )  # fmt: skip
    site = next((folder / "lib").glob("python*/site-packages"))
    (site / "dependencies.pth").write_text(
        f"{dependencies or sysconfig.get_path('purelib')}\n"
    )
    return commands


def command_runner(commands: Path, folder: Path) -> Callable[..., str]:
    """Runs a command of an environment in a folder; returns what it prints."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = {**kept, "SMMD_BENCH_CACHE": str(folder / "cache")}

    def run(command: str, *arguments: str) -> str:
        words = [str(commands / command), *arguments]
        process = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True
        )
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    return run


def _run(*arguments: str | Path) -> None:
    command = [sys.executable, *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
