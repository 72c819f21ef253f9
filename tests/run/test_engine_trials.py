"""Without an untuned model among the cells, its engine is tried before anything is trained."""

import pytest

from smmd_bench.contracts import JobResult
from smmd_bench.decoding import trial
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.experiment.file import ExperimentFile
from smmd_bench.plugin_system import registry
from smmd_bench.run.engine_trials import try_engines
from smmd_bench.run.lease import Leases
from smmd_bench.run.pipeline import run_file
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.files import read_json

TASK = "arithmetic[level=easy,operations=1]"
SIZES = {"train_examples": 64, "validation_examples": 4, "test_examples": 4, "epochs": 1}
REFUSING = '''
from dataclasses import dataclass
from typing import ClassVar
from smmd_bench.contracts import UserError

@dataclass(frozen=True)
class Refusing:
    """An engine that cannot run any model."""

    name: ClassVar[str] = "refusing"
    version: ClassVar[int] = 1

    def identity(self):
        return {"name": self.name, "version": self.version}

    def open(self, base, settings):
        raise UserError("No head of size 32 here.")
'''


@pytest.fixture
def refusing(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "_from_files", {group: {} for group in registry.GROUPS})
    monkeypatch.setattr(registry, "_files", [])
    file = tmp_path / "refusing.py"
    file.write_text(REFUSING)
    registry.load_plugin_file(file)


def experiment(**changes):
    return Experiment((TASK,), ("ce", "ntl"), base=False, recipe=SIZES, **changes)


class Runner:
    """Ends each job as it is told, and does nothing."""

    def __init__(self, failure=None):
        self.failure, self.jobs = failure, []

    def run(self, queue, folder, progress):
        while (job := queue.take()) is not None:
            self.jobs.append(job)
            yield JobResult(job, self.failure)


def tried(folder, cells, failure=None):
    runner = Runner(failure)
    with Leases(folder) as leases:
        failed = try_engines(RunDirectory(folder), cells, runner, lambda *_: None, leases)
    return runner.jobs, failed


@pytest.mark.engine
def test_an_engine_that_refuses_the_model_says_so_before_anything_is_trained(refusing, tmp_path):
    from contextlib import nullcontext

    file = ExperimentFile("run", (experiment(engine="refusing"),))
    outcome = run_file(file, tmp_path / "run", lambda: nullcontext(lambda *_: None))
    reasons = {label.split()[2]: reason for label, reason in outcome.failed.items()}
    assert reasons == dict.fromkeys(("ce", "ntl"), "decode: No head of size 32 here.")
    failures = [read_json(f) or {} for f in tmp_path.glob("run/cells/*/FAILED.json")]
    assert [failure["user_error"] for failure in failures] == [True, True]
    assert not [*tmp_path.glob("run/cells/*/train_log.parquet"), *tmp_path.glob("run/logs/train-*")]


@pytest.mark.engine
def test_a_trial_has_the_untuned_model_answer_a_prompt_of_each_task(monkeypatch):
    answered = []

    def decode(session, checkpoint, examples, *rest, **more):
        found = trial_decode(session, checkpoint, examples, *rest, **more)
        answered.append((checkpoint.kind, found["completion"].tolist()))
        return found

    trial_decode = trial.decode_checkpoint
    monkeypatch.setattr(trial, "decode_checkpoint", decode)
    cells = experiment(engine="transformers").cells
    trial.try_engine(cells, lambda *_: None)
    ((kind, completions),) = answered
    assert kind == "base"
    assert len(completions) == 1


def test_one_trial_of_each_base_and_none_where_its_untuned_model_is_a_cell(tmp_path):
    without = experiment().cells
    jobs, failed = tried(tmp_path, without)
    assert [(job.stage, job.cells) for job in jobs] == [
        ("try", (without[-1].addresses["train"],))
    ]  # fmt: skip
    assert failed == set()
    with_base = Experiment((TASK,), ("ce",), recipe=SIZES).cells
    assert tried(tmp_path, with_base)[0] == []


def test_a_trial_whose_process_dies_fails_all_cells_of_its_base(tmp_path):
    cells = experiment().cells
    run = RunDirectory(tmp_path)
    for cell in cells:
        run.cell_folder(cell).mkdir(parents=True)
    _, failed = tried(tmp_path, cells, "the process was killed by SIGKILL")
    assert failed == {*cells}
    said = [read_json(run.cell_folder(cell) / "FAILED.json") or {} for cell in cells]
    assert [(one["stage"], one["error"]) for one in said] == [
        ("decode", "the process was killed by SIGKILL")
    ] * 2


def test_nothing_is_tried_where_all_is_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(RunDirectory, "missing", lambda *_: ["decode", "measure"])
    assert tried(tmp_path, experiment().cells) == ([], set())
