"""A file of several experiments: one folder, one table, and nothing to do the second time."""

import json

import pytest

import smmd_bench as sb

from .conftest import call

FILE = """
name: two
engine: transformers
recipe: {train_examples: 64, validation_examples: 8, test_examples: 8, epochs: 1}
parts:
  - {tasks: [arithmetic], losses: [ce]}
  - {tasks: [arithmetic], losses: [ce, smmd], seeds: [1]}
"""


@pytest.mark.engine
@pytest.mark.slow
def test_the_parts_of_a_file_end_in_one_folder(tmp_path):
    (tmp_path / "two.yaml").write_text(FILE)
    planned = call("run", "two.yaml", "--dry-run", "--json", cwd=tmp_path)
    assert len(json.loads(planned.stdout)["cells"]) == 4
    assert not (tmp_path / "runs").exists()
    first = call("run", "two.yaml", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    run = sb.read_run(tmp_path / "runs" / "two")
    assert sorted(run.cells["status"]) == ["done"] * 4
    assert {(loss, seed) for loss, seed in run.cells[["loss", "seed"]].to_numpy().tolist()} == {
        ("base", 0), ("ce", 0), ("ce", 1), ("smmd", 1),
    }  # fmt: skip
    again = call("run", "two.yaml", cwd=tmp_path)
    assert "Nothing to do" in again.stdout
