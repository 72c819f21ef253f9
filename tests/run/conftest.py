"""The folder that tests of a run change."""

import pytest

from smmd_bench.run.run_directory import RunDirectory

from .finished_cells import PLAIN, claim, finish


@pytest.fixture
def run(tmp_path):
    """What a finished run leaves; weights are empty."""
    run = RunDirectory(tmp_path / "run")
    claim(run, PLAIN)
    for cell in PLAIN.cells:
        finish(run, cell)
    return run
