"""Commands that read a run say which of its cells have no folder any more."""

import shutil

import pytest

from .conftest import cell_folder, run_here


@pytest.mark.parametrize("words", ["report RUN --only scale_errors", "compare RUN RUN", "show RUN"])
def test_a_cell_whose_folder_is_gone_is_noted(words, run_folder, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(run_folder, run)
    words = words.replace("RUN", str(run)).split()
    assert "no folder" not in run_here(*words).stderr
    shutil.rmtree(gone := cell_folder(run, "ntl", 1))
    out = run_here(*words)
    said = " ".join(out.stderr.split())
    assert out.returncode == 0
    assert f"Note: 1 of the 7 cells of {run} have no folder ({gone.name}): the command" in said
