"""What is done first: the trials of all tuned losses, and then the tests of the chosen ones."""

import dataclasses

import pytest

from smmd_bench.contracts import JobResult
from smmd_bench.errors import CellSkippedError, UserError
from smmd_bench.run import pipeline
from smmd_bench.run.cell_json import cell_from_json
from smmd_bench.run.lease import Leases
from smmd_bench.run.run_directory import Outcome, RunDirectory, record_failure
from smmd_bench.run.work import Work
from tests.run.finished_cells import PLAIN, claim, decode, rate, train

TUNED = dataclasses.replace(PLAIN, base=False, tune=("learning_rate=1e-4,2e-4",))


class Executor:
    """Does the jobs in this process; a training with a rate of `fails` ends with its error."""

    slots = 1

    def __init__(self, run, fails=None):
        self.run_folder, self.fails, self.done = run, fails or {}, []

    def run(self, queue, folder, progress):
        while (job := queue.take()) is not None:
            cells = [cell_from_json(content) for content in job.payload["cells"]]
            self.done.append((job.stage, [cell.short_label for cell in cells]))
            for cell in cells:
                self._do(job.stage, cell)
            yield JobResult(job, None)

    def _do(self, stage, cell):
        error = self.fails.get(cell.recipe.learning_rate)
        if stage == "train" and error is not None:
            record_failure(self.run_folder.cell_folder(cell), "train", error)
        elif stage == "train":
            train(self.run_folder, cell)
        elif stage == "decode" and cell.trial is None:
            decode(self.run_folder, cell)
            rate(self.run_folder, cell)


@pytest.fixture
def run(tmp_path):
    found = RunDirectory(tmp_path / "run")
    claim(found, TUNED)
    return found


def work(run, cells=None, fails=None, *, waits=True):
    executor, outcome = Executor(run, fails), Outcome(run.path)
    with Leases(run.path) as leases:
        does = Work(run, executor, lambda *_: None, leases, None)
        does.finish(TUNED.cells if cells is None else cells, {}, outcome, waits=waits)
    return executor.done, outcome


def named(loss):
    return [cell for cell in TUNED.cells if cell.loss == loss and cell.trial is None]


def test_a_tuned_loss_is_tested_when_all_its_trials_are_validated(run):
    done, outcome = work(run)
    assert done[-1] == ("decode", ["ce[tuned] seed 0"])
    assert sum("ce[tuned]" in label for _, labels in done for label in labels) == 1
    assert [stage for stage, _ in done].count("train") == 3
    assert (outcome.failed, outcome.skipped, outcome.elsewhere) == ({}, {}, {})
    assert work(run)[0] == []  # nothing is left


def test_a_tuned_loss_fails_with_a_trial_and_says_with_which(run):
    _, outcome = work(run, fails={2e-4: FloatingPointError("the loss became NaN")})
    label = named("ce[tuned]")[0].label
    assert outcome.failed[label] == (
        "train: the loss became NaN (in the trial ce seed 0 with learning_rate=0.0002 (trial))"
    )
    assert named("ce")[0].label not in outcome.failed
    _, again = work(run)
    assert again.failed == {}


def test_a_mistake_in_a_trial_stays_one(run):
    work(run, fails={2e-4: UserError("no such thing")})
    assert run.failure(named("ce[tuned]")[0])["user_error"]


def test_a_tuned_loss_is_skipped_with_its_trials(run):
    why = CellSkippedError("it cannot apply")
    _, outcome = work(run, fails={1e-4: why, 2e-4: why})
    assert named("ce[tuned]")[0].label in outcome.skipped
    assert named("ce[tuned]")[0].label not in outcome.failed


def test_a_tuned_loss_whose_trials_others_do_is_left_to_them(run):
    (cell,) = named("ce[tuned]")
    done, outcome = work(run, [cell], waits=False)
    assert done == []
    assert outcome.elsewhere == {cell.label: "those that do its trials, not all of which are done"}
    assert run.failure(cell) == {}


def test_a_plan_names_the_trials_as_its_own_command_does(run):
    planned = pipeline._planned_cells(run, [])
    assert {c.label for c in planned} == {c.label for c in TUNED.cells}
    assert {*planned} == {*TUNED.cells}
    (cell,) = named("ce[tuned]")
    assert pipeline._planned_cells(run, [cell.addresses["train"]]) == [cell]
