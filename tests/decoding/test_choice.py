"""Which trial of a tuned cell is tested."""

import dataclasses

import pytest

from smmd_bench.decoding.selection import find_trained_cell, select_weights
from smmd_bench.run.run_directory import RunDirectory
from tests.run.finished_cells import PLAIN, claim, decode, rate, train

TUNED = dataclasses.replace(
    PLAIN, losses=("ce",), tune=("learning_rate=1e-4,2e-4,3e-4",), base=False
)


@pytest.fixture
def run(tmp_path):
    directory = RunDirectory(tmp_path)
    claim(directory, TUNED)
    return directory


def tuned_cell():
    (cell,) = [cell for cell in TUNED.cells if cell.grid]
    return cell


def validate(run, *right):
    """Train the trials, each with so many right answers, and choose."""
    cell = tuned_cell()
    for trial, count in zip(cell.trials, right, strict=False):
        train(run, trial, right=count)
    select_weights(cell, run.path)
    return run.current(cell)


@pytest.mark.parametrize(
    ("right", "chosen"),
    [((1, 3, 2), 1), ((2, 2, 2), 0), ((1, 3, 3), 1), ((0, 0, 4), 2)],
)
def test_the_best_in_validation_is_chosen_and_of_equals_the_first(run, right, chosen):
    tuned = validate(run, *right)
    assert [line["value"] for line in tuned.choice["trials"]] == [
        25.0 * count for count in right
    ]
    assert tuned.chosen == tuned.trials[chosen]
    assert find_trained_cell(tuned_cell(), run.path) == tuned_cell().trials[chosen]


def test_nothing_is_chosen_before_every_trial_is_validated(run):
    tuned = validate(run, 1, 3)
    assert tuned.choice is None
    assert tuned.home is None
    assert tuned.tested is None
    assert tuned.receipt is None
    assert run.missing([tuned_cell()]) == {tuned_cell(): "decode"}
    with pytest.raises(RuntimeError, match="is chosen yet"):
        find_trained_cell(tuned_cell(), run.path)


def test_a_tuned_cell_is_tested_with_the_weights_of_the_chosen_trial(run):
    cell = tuned_cell()
    tuned = validate(run, 1, 3, 2)
    assert tuned.tested == tuned.trials[1].tested
    assert tuned.checkpoint == tuned.trials[1].checkpoint
    assert tuned.selection == tuned.trials[1].selection

    decode(run, cell)
    rate(run, cell)
    assert not run.missing([cell])

    train(run, cell.trials[2], right=4, weights="others")
    assert run.current(cell).choice is None

    select_weights(cell, run.path)
    assert run.current(cell).chosen == run.current(cell).trials[2]
    assert run.missing([cell]) == {cell: "decode"}
