"""What a plan makes its user think about before a run."""

import dataclasses

import pytest

from smmd_bench.cli.plan_notes import plan_notes, tuning_notes
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.experiment.file import ExperimentFile
from smmd_bench.run.run_directory import RunDirectory

CE = Experiment(("arithmetic",), ("ce",))
NTL = dataclasses.replace(CE, losses=("ntl",))


@pytest.fixture
def run(tmp_path):
    return RunDirectory(tmp_path / "run")


def notes(run, experiment, disk=0):
    plan = ExperimentFile(None, (experiment,))
    return [*plan_notes(plan, run, plan.cells, disk)]


def test_losses_beside_cross_entropy_need_no_note_wherever_it_is(run):
    assert notes(run, dataclasses.replace(CE, losses=("ce", "ntl"))) == []
    (said,) = notes(run, NTL)
    assert "losses are compared with the untuned model only; add ce" in said
    (said,) = notes(run, dataclasses.replace(NTL, base=False))
    assert "losses are compared with nothing; add ce" in said
    with run.locked():
        run.claim([CE])
    assert notes(run, NTL) == []  # as with --extend


def test_a_disk_that_the_weights_do_not_fit_is_named(run):
    assert notes(run, CE, disk=1) == []
    (said,) = notes(run, CE, disk=10**18)
    assert f"about 909494.7 TiB, and the disk of {run.path} has" in said
    assert said.endswith("free some, or choose another with --out.")


def test_what_is_tuned_is_said_with_the_budget_and_a_published_setting_that_is_no_candidate():
    tune = ("lambda=1,3", "ce: learning_rate=5e-4,1e-3")
    losses = ("ce", "ntl", "smmd")
    cells = dataclasses.replace(CE, losses=losses, seeds=(0, 1), tune=tune).cells
    assert [*tuning_notes(cells)] == [
        "Tuned: 2 configurations each of 3 losses for 2 seeds, chosen on the validation examples "
        "of each.",
        "  ce: learning_rate=0.0005; learning_rate=0.001",
        "  ntl: lambda=1; lambda=3 (not ntl as published, which has its own row)",
        "  smmd: lambda=1; lambda=3",
    ]
    assert [*tuning_notes(NTL.cells)] == []
