"""The command: in this process, in one of its own, or on a real pseudo-terminal."""

import contextlib
import fcntl
import io
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path
from unittest import mock

import pytest

from smmd_bench.cli import main
from smmd_bench.plugin_system import registry
from smmd_bench.results.frames import read_run
from tests.in_process import coarse_figures

COMMAND = str(Path(sys.executable).parent / "smmd-bench")
Ended = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def run_folder(run_folder, tmp_path_factory):
    """A copy of the synthetic run, whose reports the commands make."""
    return Path(shutil.copytree(run_folder, tmp_path_factory.mktemp("commands") / "synthetic"))


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Plugin files of one test are not those of the next."""
    from_files = {group: {**plugins} for group, plugins in registry._from_files.items()}
    monkeypatch.setattr(registry, "_from_files", from_files)
    monkeypatch.setattr(registry, "_files", [*registry._files])


@pytest.fixture
def few_reports(monkeypatch):
    """Two tables and a figure are all reports that there are."""
    names = ["arithmetic_table", "overview", "scale_errors"]
    monkeypatch.setattr("smmd_bench.publishing.write_reports.names", lambda group: names)


def run_here(*arguments: object, cwd: Path | None = None, **environment: str) -> Ended:
    """Run the command in this process, which has imported most of it; figures are coarse."""
    words = ["smmd-bench", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(coarse_figures())
        stack.enter_context(contextlib.chdir(cwd or Path.cwd()))
        stack.enter_context(mock.patch.dict(os.environ, environment))
        stack.enter_context(mock.patch.object(sys, "argv", words))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def call(*arguments: object, cwd: Path | None = None, **environment: str) -> Ended:
    """Run the command on pipes; a variable that is empty is left out."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=_variables(environment),
    )


def on_terminal(
    *arguments: object, columns: int = 80, cwd: Path | None = None, **environment: str
) -> str:
    """What the command writes on a terminal of that width; it must end well."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env=_variables({"TERM": "xterm-256color", "COLUMNS": "", "NO_COLOR": "", **environment}),
    )
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(ours, 65536):
            written += part
    os.close(ours)
    text = written.decode()
    assert process.wait() == 0, text
    return text


def _variables(environment: dict[str, str]) -> dict[str, str]:
    return {k: v for k, v in {**os.environ, **environment}.items() if v}


def write_distribution(site: Path, name: str, source: str) -> None:
    """Install a distribution whose module, of that name, has a loss `Mine`."""
    (site / f"{name}.py").write_text(source)
    facts = site / f"{name}_package-2.5.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-package\nVersion: 2.5\n")
    (facts / "entry_points.txt").write_text(f"[smmd_bench.losses]\n{name} = {name}:Mine\n")


def cell_folder(run: Path, loss: str, seed: int = 0) -> Path:
    """The folder of a cell."""
    cells = read_run(run).cells
    (address,) = cells[(cells["loss"] == loss) & (cells["seed"] == seed)]["address"]
    return run / "cells" / str(address)
