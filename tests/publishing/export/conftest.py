"""Exports of runs: one with real adapters, and synthetic ones without weights."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from smmd_bench.cli import cli
from tests.regression.conftest import checkpoints, make_run
from tests.runs import quick_run

__all__ = ["checkpoints", "make_run"]
Export = Callable[..., Path]


def export_all(run: Path, out: Path, *words: object) -> list[Path]:
    """Call `smmd-bench export`; the folders that it wrote."""
    given = ["export", str(run), "--out", str(out), *map(str, words)]
    result = CliRunner().invoke(cli, given, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return [Path(line) for line in result.stdout.splitlines()]


@pytest.fixture
def export(tmp_path) -> Export:
    """`export(run, *words)`: the one folder that the export of a run's `smmd` cell gives."""

    def call(run: Path, *words: object) -> Path:
        (folder,) = export_all(run, tmp_path / "out", "--loss", "smmd", *words)
        return folder

    return call


@pytest.fixture(scope="session")
def arithmetic_run(tmp_path_factory):
    """A synthetic run of arithmetic, without weights."""
    folder = tmp_path_factory.mktemp("export") / "arithmetic"
    quick_run(folder, n=40)
    return folder
