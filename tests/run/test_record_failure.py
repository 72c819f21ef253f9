"""FAILED.json says what happened, in which stage, and whether the user can mend it."""

from pathlib import Path

import pytest

from smmd_bench.errors import CellSkippedError, UserError
from smmd_bench.run.run_directory import RunDirectory, record_failure
from smmd_bench.storage.files import DamagedError

from .finished_cells import PLAIN, claim, trained_cell


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path / "run")
    claim(run, PLAIN)
    return run


@pytest.mark.parametrize(
    ("error", "said", "skipped", "users"),
    [
        (ValueError(" why\n"), "why", False, False),
        (KeyError(), "KeyError", False, False),
        (UserError("yours"), "yours", False, True),
        (CellSkippedError("cannot apply"), "cannot apply", True, False),
        (DamagedError(Path("a"), "damaged"), "a is damaged: delete it", False, False),
        ("the last words", "the last words", False, False),
        (OSError(28, "No space left on device"), "free some space on the disk of", False, False),
    ],
)
def test_a_failure_says_what_it_was_of_whom_and_counts_for_the_cell(
    run, error, said, skipped, users
):
    cell = trained_cell()
    record_failure(run.cell_folder(cell), "decode", error)
    found = run.failure(cell)
    assert said in found["error"]
    assert (found["stage"], found["skipped"], found["user_error"]) == ("decode", skipped, users)
    last = error if isinstance(error, str) else type(error).__name__
    assert last in found["traceback"]
