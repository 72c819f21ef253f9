"""The command: in this process, or in one of its own."""

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from smmd_bench.cli import run_command
from smmd_bench.publishing import write_reports
from tests.in_process import coarse_figures

COMMAND = str(Path(sys.executable).parent / "smmd-bench")
Ended = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def run_folder(run_folder, tmp_path_factory):
    """A copy of the synthetic run, whose reports the commands make."""
    return Path(
        shutil.copytree(run_folder, tmp_path_factory.mktemp("commands") / "synthetic")
    )


@pytest.fixture
def few_reports(monkeypatch):
    """Two tables and a figure are all reports that there are."""
    few, every = ["arithmetic_table", "overview", "scale_errors"], write_reports.names
    names = lambda group: few if group == "reports" else every(group)  # noqa: E731
    monkeypatch.setattr(write_reports, "names", names)


def run_here(line: str, *, cwd: Path | None = None, **environment: str) -> Ended:
    """Run the command in this process, which has imported most of it; figures are coarse."""
    words = ["smmd-bench", *shlex.split(line)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(coarse_figures())
        stack.enter_context(contextlib.chdir(cwd or Path.cwd()))
        stack.enter_context(mock.patch.dict(os.environ, environment))
        stack.enter_context(mock.patch.object(sys, "argv", words))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        status = run_command()
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def call(line: str, *, cwd: Path | None = None, **environment: str) -> Ended:
    """Run the command on pipes; a variable that is empty is left out."""
    words = [COMMAND, *shlex.split(line)]
    variables = {k: v for k, v in {**os.environ, **environment}.items() if v}
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd, env=variables)


def write_distribution(site: Path, name: str, source: str) -> None:
    """Install a distribution whose module, of that name, has a loss `Mine`."""
    (site / f"{name}.py").write_text(source)
    facts = site / f"{name}_package-2.5.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}-package\nVersion: 2.5\n"
    )
    (facts / "entry_points.txt").write_text(
        f"[smmd_bench.losses]\n{name} = {name}:Mine\n"
    )
