"""Which job comes next: nothing waits for what it does not need."""

from typing import ClassVar, NamedTuple

import pytest

from smmd_bench.contracts import Job, JobResult
from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.loading import add_adapter, load_model
from smmd_bench.run import schedule
from smmd_bench.run.needs import disk_bytes
from smmd_bench.run.run_directory import RunDirectory, record_failure
from smmd_bench.run.schedule import Schedule
from smmd_bench.storage.addresses import file_word
from smmd_bench.storage.files import read_json

WORDS = "gsm8k[source=synthetic]"
ALL = ["train", "decode", "measure"]


class Now(NamedTuple):
    """What the schedule asks of a cell's folders."""

    key: str
    checkpoint: object


class Run(RunDirectory):
    """A folder in which a cell misses what `left` says."""

    left: ClassVar[dict[str, list[str]]] = {}

    def missing(self, cells):
        return {
            cell: self.left[cell.label][0] for cell in cells if self.left[cell.label]
        }

    def current(self, cell):
        home = cell if cell.source is None else cell.source
        return Now(
            file_word(cell.label), "measure" not in self.left[home.label] or None
        )

    def failure(self, cell):
        return read_json(self.path / "failed" / f"{file_word(cell.label)}.json") or {}


class Player:
    """Runs the jobs of cells one after the other; `jobs` are those of the last play."""

    def __init__(self, run):
        self.run = run
        self.jobs: list[Job] = []

    def __call__(self, cells, *, slots=1, fails=lambda *_: None, dies=()):
        """The stages and cells, in order, and the failures."""
        self.run.left = {cell.label: [*_stages_of(cell)] for cell in cells}
        return self.finish(cells, slots=slots, fails=fails, dies=dies)

    def finish(self, cells, *, slots=1, fails=lambda *_: None, dies=()):
        queue = Schedule(self.run, cells, slots)
        seen, self.jobs = [], []
        while (job := queue.take()) is not None:
            in_job = queue.running[job.name]
            seen.append((job.stage, [_short_label(cell) for cell in in_job]))
            self.jobs.append(job)
            dead = job.stage in dies
            for cell in in_job:
                error = fails(job.stage, cell)
                if error is not None:
                    record_failure(
                        self.run.path, file_word(cell.label), job.stage, error
                    )
                elif not dead:
                    self._end(cell, job.stage)
            queue.end(JobResult(job, "the process was killed" if dead else None))

        assert not queue.waiting

        return seen, {_short_label(cell): self.run.failure(cell) for cell in cells}

    def _end(self, cell, stage):
        stages = self.run.left[cell.label]
        del stages[: stages.index(stage) + 1]
        if stage == "decode":  # which measures, too
            stages.clear()


@pytest.fixture
def play(tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "select_weights", lambda cell, run: None)
    return Player(Run(tmp_path))


def _short_label(cell):
    return cell.label.removeprefix("builtin/tiny ")


def _stages_of(cell):
    return ALL if cell.source is None else ALL[1:]


def cells_of(losses, *, seeds=(0,), base=True, task="arithmetic"):
    return Experiment((task,), tuple(losses), seeds=tuple(seeds), base=base).cells


def stages(seen):
    return [(stage, len(cells)) for stage, cells in seen]


def test_the_base_goes_first_and_an_engine_starts_for_enough_cells(play):
    cells = cells_of(["ce", "ntl"], seeds=range(3))
    seen, failed = play(cells)
    assert stages(seen) == [
        ("train", 1), ("decode", 1), *[("train", 1)] * 4, ("decode", 4), *[("train", 1)] * 2,
        ("decode", 2),
    ]  # fmt: skip
    assert "base" in seen[0][1][0]
    assert seen[0][1] == seen[1][1]
    assert not any(failed.values())


@pytest.mark.parametrize(("slots", "parts"), [(1, [6]), (2, [3, 3]), (8, [2, 2, 2])])
def test_what_is_left_to_decode_is_shared_out(play, slots, parts):
    cells = cells_of(["ce", "ntl"], seeds=range(3), base=False)
    play.run.left = {cell.label: ALL[1:] for cell in cells}
    seen, _ = play.finish(cells, slots=slots)
    assert stages(seen) == [("decode", part) for part in parts]


def test_an_engine_waits_for_a_training_that_has_written_everything_and_not_ended(play):
    cells = cells_of(["ce", "ntl"], base=False)
    play.run.left = {cell.label: list(ALL) for cell in cells}
    queue = Schedule(play.run, cells, 2)
    first, second = queue.take(), queue.take()
    play.run.left = {cell.label: ALL[1:] for cell in cells}

    queue.end(JobResult(first, None))

    assert queue.take() is None

    queue.end(JobResult(second, None))
    decoding = queue.take()
    assert len(queue.cells[decoding.name]) == 2
    assert queue.take() is None


def test_a_test_of_transfer_goes_with_its_source(play):
    cells = cells_of(["ce", "ntl"], task=WORDS, base=False)
    assert sum(cell.source is not None for cell in cells) >= 2
    seen, _ = play(cells, slots=2)
    assert [stage for stage, _ in seen][:2] == ["train"] * 2
    for _, together in seen[2:]:
        sources = {label.split(" ")[1] for label in together}
        assert len(together) == len(sources) * len(cells) / 2


def test_a_test_of_transfer_fails_with_the_training_of_its_source(play):
    cells = cells_of(["ce", "ntl"], task=WORDS, base=False)

    def fails(stage, cell):
        return UserError("no") if (stage, cell.loss) == ("train", "ce") else None

    seen, failed = play(cells, fails=fails)
    tests = [cell for cell in cells if cell.source is not None and cell.loss == "ce"]
    for test in tests:
        failure = failed[_short_label(test)]
        assert failure["error"] == f"no (in training on {test.trained_on})"
        assert failure["user_error"]

    assert all(" ce " not in label for _, labels in seen[2:] for label in labels)


@pytest.mark.parametrize(("slots", "order"), [(1, [1, 3, 2]), (2, [3, 2, 1])])
def test_trainings_go_seed_after_seed_and_side_by_side_the_longest_first(
    play, slots, order
):
    cells = []
    for loss, epochs in (("ce", 1), ("ntl", 3), ("smmd", 2)):
        recipe = {"epochs": epochs}
        experiment = Experiment(
            ("arithmetic",), (loss,), seeds=(7, 0), base=False, recipe=recipe
        )
        cells += experiment.cells

    by_address = {cell.address: cell for cell in cells}

    play(cells, slots=slots)
    trainings = [job.cells[0] for job in play.jobs if job.stage == "train"]
    trained = [by_address[address] for address in trainings]
    assert [cell.seed for cell in trained] == [0, 0, 0, 7, 7, 7]
    assert [cell.recipe.epochs for cell in trained] == order * 2


def test_nothing_is_trained_on_a_base_that_the_engine_cannot_run(play):
    cells = cells_of(["ce", "ntl", "smmd"])
    seen, failed = play(
        cells, fails=lambda stage, _: "head size 8" if stage == "decode" else None
    )
    assert stages(seen) == [("train", 1), ("decode", 1)]
    assert {(f["stage"], f["error"]) for f in failed.values()} == {
        ("decode", "head size 8")
    }


def test_trainings_begin_beside_a_base_that_answers_and_none_begins_where_it_fails(
    play,
):
    cells = cells_of(["ce", "ntl"])
    play.run.left = {cell.label: ALL[cell.is_base :] for cell in cells}
    queue = Schedule(play.run, cells, 2)
    engine = queue.take()
    assert queue.take() is None

    queue.hear_answers(engine)

    training = queue.take()
    queue.end(JobResult(engine, "it died"))
    assert queue.take() is None
    assert play.run.failure(cells[2])["error"] == "it died"
    play._end(cells[1], training.stage)
    queue.end(JobResult(training, None))
    assert queue.take().stage == "decode"


def test_a_dead_job_fails_what_it_left(play):
    seen, failed = play(cells_of(["ce", "ntl"]), dies=["train"])
    assert stages(seen) == [("train", 1)] * 3
    assert {f["error"] for f in failed.values()} == {"the process was killed"}


@pytest.mark.parametrize("method", ["full", "lora"])
def test_the_disk_holds_one_checkpoint_a_cell_and_before_a_few_cells_epochs(method):
    recipe = {"method": method, "epochs": 15}
    experiment = Experiment(
        ("arithmetic",), ("ce",), seeds=tuple(range(40)), recipe=recipe
    )
    cells = experiment.cells
    model = load_model(cells[1].card.folder, "float32")
    if method == "lora":
        model = add_adapter(model, cells[1].recipe)
    trained = [weight.numel() for weight in model.parameters() if weight.requires_grad]
    saved = 4 * sum(trained)

    end, peak = disk_bytes(cells, 2)

    assert end == pytest.approx(40 * saved, rel=0.01)

    waiting = 15 * (2 + 2 * 4)
    states = 2 * 2 * 3
    assert peak == pytest.approx((40 + waiting + states) * saved, rel=0.01)
    assert disk_bytes(cells[:1], 2) == (0, 0)
