"""How long a plan takes, from what was measured of its jobs."""

from datetime import datetime
from types import SimpleNamespace

import pytest

from smmd_bench.contracts import Job, JobResult
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.run import plan_progress
from smmd_bench.run.measured_pace import measure_pace
from smmd_bench.run.pace import Pace, Work, span, times_of, works_of
from smmd_bench.run.plan_progress import PlanProgress
from tests.in_process import InProcess

RECIPE = {
    "train_examples": 1600,
    "validation_examples": 50,
    "test_examples": 100,
    "epochs": 2,
    "batch_size": 16,
    "micro_batch_size": 16,
}
STEPS = 200
DECODED = 2 * 50 + 100


@pytest.fixture
def cells():
    return Experiment(("arithmetic",), ("ce", "smmd"), recipe=RECIPE).cells


class Display:
    """What shows the progress, and `plan`, the sentences on the plan."""

    def __init__(self):
        self.plan = []
        self.lines = []

    def __call__(self, what, done, total):
        self.lines.append((what, done, total))

    def show_plan(self, sentence):
        self.plan.append(sentence)


class Run:
    """Jobs that say something at a second of a clock that stands still between."""

    def __init__(self, monkeypatch, cells):
        self.clock = 0.0
        monkeypatch.setattr(plan_progress.time, "monotonic", lambda: self.clock)
        base, ce, smmd = cells
        self.stored = {}
        self.read = []
        self.answering = []
        self.schedule = SimpleNamespace(
            missing={base: "decode", ce: "train", smmd: "train"},
            running={},
            cells={"decode-base": [base], "train-ce": [ce], "train-smmd": [smmd]},
            taken={},
            run=SimpleNamespace(current=self.current),
            hear_answers=self.answering.append,
            end=lambda result: self.schedule.running.pop(result.job.name),
        )
        self.display = Display()
        self.progress = PlanProgress(self.schedule, cells, self.display, {})

    def current(self, cell):
        self.read.append(cell)
        return SimpleNamespace(**self.stored.get(cell, {"receipt": {}}))

    def start(self, name, at):
        self.clock = at
        self.schedule.taken[name] = at
        self.schedule.running[name] = self.schedule.cells[name]

    def say(self, name, at, what, done, total):
        self.clock = at
        stage, _, cell = name.partition("-")
        job = Job(stage, cell, (cell,), {}, place="tiny")
        job.told(self.progress)(what, done, total)
        return self.display.plan[-1]

    def end(self, name, done):
        stage, _, cell = name.partition("-")
        for finished in done:
            del self.schedule.missing[finished]
        self.progress.end(JobResult(Job(stage, cell, (cell,), {}), None))
        return self.display.plan[-1]


@pytest.fixture
def run(monkeypatch, cells):
    return Run(monkeypatch, cells)


def test_until_something_is_measured_the_plan_says_how_many_are_done(run):
    assert run.display.plan == ["Plan: 0 of 2 trainings done"]
    run.start("train-ce", 0)
    said = run.say("train-ce", 5, "tokenise ce seed 0", 1600, 1600)
    assert said == "Plan: 0 of 2 trainings done"
    assert run.say("train-ce", 9, "train ce seed 0", 1, STEPS) == said
    assert run.display.lines[-1] == ("tiny: train ce seed 0", 1, STEPS)


def test_the_time_left_follows_from_steps_and_decoded_examples(run, cells):
    ce = cells[1]
    run.start("train-ce", 0)
    run.say("train-ce", 10, "train ce seed 0", 1, STEPS)
    # 2 s a step after 10 s: 179 steps of this one, then a start and 200 of the other
    said = run.say("train-ce", 50, "train ce seed 0", 21, STEPS)
    seconds = 2 * (STEPS - 21) + 10 + 2 * STEPS
    assert (
        said == f"Plan: 0 of 2 trainings done, about {span(seconds)} of training left"
    )

    run.schedule.missing[ce] = "decode"
    run.end("train-ce", [])
    run.start("decode-base", 100)
    run.say("decode-base", 108, "start engine", 1, 1)
    run.say("decode-base", 108, "test base", 0, 100)
    assert run.answering == []
    said = run.say("decode-base", 118, "test base", 100, 100)
    assert [job.name for job in run.answering] == ["decode-base"]
    # 0.1 s an example; each of the three cells has a fourth of an engine's start of 8 s
    seconds = 10 + 2 * STEPS + 2 * 0.1 * DECODED + 2 * 8 / 4
    assert f"1 of 2 trainings done, about {span(seconds)} left, ends about " in said
    datetime.strptime(said[-5:], "%H:%M")


def test_jobs_that_run_side_by_side_share_what_is_left(run):
    for name in ("train-ce", "train-smmd"):
        run.start(name, 0)
    for name, loss in (("train-ce", "ce"), ("train-smmd", "smmd")):
        run.say(name, 10, f"train {loss} seed 0", 1, STEPS)
    run.say("train-ce", 30, "train ce seed 0", 11, STEPS)
    said = run.say("train-smmd", 32, "train smmd seed 0", 11, STEPS)
    mean = (20 + 22) / 20
    assert f"about {span(mean * (STEPS - 11))} of training left" in said


def test_the_steps_of_an_earlier_command_count_in_no_rate(run):
    run.start("train-ce", 0)
    run.say("train-ce", 10, "train ce seed 0", 101, STEPS)
    said = run.say("train-ce", 20, "train ce seed 0", 111, STEPS)
    assert f"about {span(STEPS - 111 + 10 + STEPS)} of training left" in said


def test_a_failed_training_is_counted_apart(run, cells):
    run.start("train-ce", 0)
    run.stored[cells[1]] = {"receipt": None}
    assert "Plan: 0 of 2 trainings done, 1 failed or skipped" in run.end(
        "train-ce", [cells[1]]
    )


def test_the_receipt_of_a_finished_training_is_read_once(run, cells):
    _, ce, smmd = cells
    for name, cell in (("train-ce", ce), ("train-smmd", smmd)):
        run.start(name, 0)
        run.end(name, [cell])
    assert run.read == [ce, smmd]


def test_what_is_not_measured_has_no_time(run, cells):
    run.schedule.missing.clear()
    run.schedule.missing[cells[1]] = "decode"
    run.start("decode-base", 0)
    said = run.say("decode-base", 9, "start engine", 1, 1)
    assert " left" not in said
    assert times_of(works_of(run.schedule.missing, {}), Pace(), [1, 2]) == {}


def test_seven_trainings_on_four_gpus_take_two_rounds():
    measured = Pace()
    work = Work("train", "m", "t", 10, 1.0)
    assert measured.seconds_of([work], "train", 1) is None
    assert measured.seconds_of([], "train", 1) == 0
    measured.add(work, 30)
    measured.add_start("train", 5)
    assert measured.seconds_of([work] * 7, "train", 4) == 2 * 35
    assert measured.seconds_of([work._replace(is_begun=True)], "train", 4) == 30


def test_what_was_not_measured_takes_as_long_for_each_weight_and_token():
    measured = Pace()
    measured.add(Work("train", "small", "t", 10, 100.0), 30)
    assert (
        measured.seconds_of([Work("train", "large", "t", 5, 400.0)], "train", 1) == 60
    )


def test_cells_that_share_a_training_count_it_once(cells):
    _, ce, smmd = cells
    missing = {ce: "train", smmd: "decode"}
    works = works_of(missing, {("builtin/tiny", ce.task, "train"): 10.0})
    assert [(work.stage, work.units) for work in works] == [
        ("train", STEPS), ("decode", DECODED), ("decode", DECODED),
    ]  # fmt: skip
    assert works[0].size == ce.card.parameter_count() * 16 * 10


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "1 s"),
        (59, "59 s"),
        (90, "2 min"),
        (3600 * 3 + 60 * 20, "3 h 20 min"),
        (3600 * 53, "2 d 5 h"),
    ],
)
def test_a_time_is_said_in_its_two_largest_units(seconds, said):
    assert span(seconds) == said


@pytest.mark.engine
def test_three_real_steps_and_a_few_examples_are_measured_and_nothing_is_kept(tmp_path):
    cells = Experiment(
        ("arithmetic",), ("ce", "smmd"), engine="transformers", recipe=RECIPE
    ).cells
    missing = dict.fromkeys(cells, "train")
    lines = []
    measured = measure_pace(
        missing, {}, InProcess(), tmp_path / "run", lambda *line: lines.append(line)
    )
    assert ("train smmd seed 0", 3, 3) in lines
    assert ("test smmd seed 0", 50, 50) in lines
    assert {*measured.starts} == {"train", "decode"}
    assert measured.seconds_of(works_of(missing, {}), "train", 1) > 0
    assert measured.seconds_of(works_of(missing, {}), "decode", 1) > 0
    assert list(tmp_path.iterdir()) == []
