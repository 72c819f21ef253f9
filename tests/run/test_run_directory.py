"""What a change redoes, on a folder that holds what a finished run leaves (weights are empty)."""

import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from smmd_bench.tasks.arithmetic import Arithmetic

from smmd_bench.contracts import ExactMatch
from smmd_bench.decoding.selection import select_weights
from smmd_bench.errors import CellSkippedError, UserError
from smmd_bench.experiment.file import ExperimentFile
from smmd_bench.models.card_content import builtin_folder
from smmd_bench.models.cards import model_card
from smmd_bench.results.availability import card_of_run
from smmd_bench.results.frames import read_run
from smmd_bench.run.cell_json import cell_from_json
from smmd_bench.run.pipeline import run_file
from smmd_bench.run.run_directory import RunDirectory, record_failure
from smmd_bench.scoring import statistics
from smmd_bench.storage.files import DamagedError, read_json, write_json

from ..conftest import expect_user_error, read_files, separate_plugins, silent
from ..plugin_system.loss_file import LOSS
from .finished_cells import (
    PLAIN,
    claim,
    decode,
    finish,
    keep_epochs,
    rate,
    train,
    trained_cell,
)


def missing(run, **changes):
    """What is missing of the CE cell after a change, once selections are brought up to date."""
    changes["recipe"] = {**PLAIN.recipe, **changes.get("recipe", {})}
    (cell,) = [c for c in replace(PLAIN, **changes).cells if not c.is_base]
    select_weights(cell, run.path)
    return run.missing([cell]).get(cell)


def test_a_finished_run_misses_nothing(run, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    run.require_place()  # a plan may be made of a run that may only be read
    assert missing(run) is None
    assert (read_run(run.path).cells.status == "done").all()


def test_the_epoch_that_validates_best_is_kept(run):
    stored = run.current(trained_cell())
    assert stored.selection["best_epoch"] == 2
    first, second = stored.selection["epochs"]
    assert first["mean_absolute_error"] is None  # none of its answers parses
    assert second["exact_match"] == 75.0
    assert [folder.name for folder in (stored.trained / "epochs").iterdir()] == ["2"]


@pytest.mark.parametrize(
    ("owner", "attribute"),
    [(Arithmetic, "version"), (ExactMatch, "version"), (statistics, "VERSION")],
)
def test_a_new_parser_metric_or_statistic_only_measures_again(
    run, monkeypatch, owner, attribute
):
    monkeypatch.setattr(owner, attribute, 99)
    assert missing(run) == "measure"

    experiment = replace(PLAIN)
    claim(run, experiment)
    for cell in experiment.cells:
        select_weights(cell, run.path)
        rate(run, cell)

    assert (read_run(run.path).cells.status == "done").all()


@pytest.mark.parametrize("owner", [Arithmetic, ExactMatch])
def test_a_plan_takes_what_is_validated_as_selected_and_writes_nothing(
    run, monkeypatch, owner
):
    monkeypatch.setattr(owner, "version", 99)
    files = read_files(run.path)
    assert {*run.missing(replace(PLAIN).cells).values()} == {"measure"}
    assert read_files(run.path) == files


def test_a_plan_says_a_training_where_another_epoch_is_selected_now(run, monkeypatch):
    monkeypatch.setattr(ExactMatch, "version", 99)
    monkeypatch.setattr(ExactMatch, "better", "lower")
    stages = {
        cell.is_base: stage for cell, stage in run.missing(replace(PLAIN).cells).items()
    }
    assert stages == {True: "measure", False: "train"}


def test_a_task_that_cannot_score_any_more_does_not_end_a_plan(run, monkeypatch):
    monkeypatch.setattr(Arithmetic, "version", 99)
    monkeypatch.setattr(Arithmetic, "parse", lambda *_: 1 / 0)
    assert {*run.missing(replace(PLAIN).cells).values()} == {"measure", "train"}


@pytest.mark.parametrize(
    ("change", "stage"),
    [
        ({"recipe": {"test_examples": 3}}, "decode"),
        ({"recipe": {"learning_rate": 0.5}}, "train"),
        # the other epoch's weights are gone
        ({"recipe": {"validation_examples": 3}}, "train"),
        ({"engine": "transformers"}, "train"),
    ],
)
def test_only_what_a_setting_can_change_is_done_again(run, change, stage):
    assert missing(run, **change) == stage
    keep_epochs(run, trained_cell())
    assert missing(run, **change) == (
        "decode" if "learning_rate" not in str(change) else stage
    )


@pytest.mark.parametrize("number", [1, 2, 4, None])
def test_a_run_of_another_format_is_refused_with_the_command_that_converts_it(
    run, number
):
    file = run.path / "manifest.json"
    write_json(file, {**read_json(file), "format": number})
    with expect_user_error(r"in the format .* with scripts/convert_run.py of"):
        read_run(run.path)
    with expect_user_error("in the format"):
        claim(run, PLAIN)


def test_the_manifest_of_another_program_is_refused(run):
    write_json(run.path / "manifest.json", {"name": "of another program"})
    for read in (read_run, lambda _: claim(run, PLAIN)):
        with expect_user_error(r"manifest\.json is not that of a run: choose another"):
            read(run.path)


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / ".manifest.json.123.part").touch()  # of a killed process
    with RunDirectory(tmp_path).locked():
        pass
    (tmp_path / "thesis.tex").touch()
    with (
        expect_user_error(r"no run \(thesis.tex\)"),
        RunDirectory(tmp_path).locked(),
    ):
        pass


def test_a_plugin_file_is_copied_and_makes_no_other_experiment(run, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(LOSS.replace('"mine"', '"copied"'))
    experiment = replace(PLAIN, plugins=(str(file),))
    assert experiment.name == PLAIN.name

    run.require_own([experiment], extend=False)
    claim(run, experiment)
    run.require_own([PLAIN], extend=False)
    (copied,) = run.path.glob("plugins/*/mine.py")
    assert copied.read_text() == file.read_text()


def test_a_plugin_of_the_folder_that_is_not_here_is_missed_at_the_start(run, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(LOSS)
    with separate_plugins():
        own_loss = replace(PLAIN, losses=("mine",), plugins=(str(file),))
        claim(run, own_loss)

    files = read_files(run.path)
    with expect_user_error(r"plugins that are not here \(mine\): name their files"):
        plain = replace(PLAIN, losses=("smmd",))
        run_silently(run, plain, extend=True)
    assert read_files(run.path) == files


def run_silently(run, experiment, **how):
    plan = ExperimentFile(None, (experiment,))
    # As another process, which holds nothing.
    run = RunDirectory(run.path)
    missing = run.missing(plan.cells)
    run_file(plan, run, missing, lambda: nullcontext(silent), **how)


@pytest.mark.parametrize(
    ("changes", "locked", "said"),
    [
        ({"losses": ("smmd",)}, False, "belongs to another experiment"),
        ({}, True, "Another process is working on"),
        ({"recipe": {**PLAIN.recipe, "max_length": 12}}, None, "--set max_length="),
    ],
)
def test_a_command_that_is_refused_leaves_the_folder_as_it_was(
    tmp_path, changes, locked, said
):
    run = RunDirectory(tmp_path / "run")
    if locked is not None:
        claim(run, PLAIN)
    files = read_files(run.path)
    with (
        run.locked() if locked else nullcontext(),
        expect_user_error(said),
    ):
        run_silently(run, replace(PLAIN, **changes))
    assert read_files(run.path) == files


@pytest.mark.parametrize(
    ("error", "said", "skipped", "users"),
    [
        (ValueError(" why\n"), "why", False, False),
        (KeyError(), "KeyError", False, False),
        (UserError("yours"), "yours", False, True),
        (CellSkippedError("cannot apply"), "cannot apply", True, False),
        (DamagedError(Path("a"), "damaged"), "a is damaged: delete it", False, False),
        ("the last words", "the last words", False, False),
        (
            OSError(28, "No space left on device"),
            "free some space on the disk of",
            False,
            False,
        ),
    ],
)
def test_a_failure_says_what_it_was_of_whom_and_counts_for_the_cell(
    tmp_path, error, said, skipped, users
):
    run = RunDirectory(tmp_path)
    cell = trained_cell()
    key = run.current(cell).key
    record_failure(tmp_path, key, "decode", error)
    failure = run.failure(cell)
    assert said in failure["error"]
    assert failure["stage"] == "decode"
    assert failure["skipped"] == skipped
    assert failure["user_error"] == users

    last = error
    if isinstance(error, Exception):
        last = type(error).__name__
    assert last in failure["traceback"]


def test_a_model_given_by_a_path_is_found_from_anywhere_and_named_where_it_is_gone(
    tmp_path, monkeypatch
):
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    model = folder / "m"
    model.symlink_to(builtin_folder("builtin/tiny"))
    run = RunDirectory(tmp_path / "run")
    experiment = replace(PLAIN, models=("./m",))
    claim(run, experiment)
    addresses = [cell.parts for cell in experiment.cells]

    assert addresses == [cell.parts for cell in PLAIN.cells]  # by content, not by name

    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    model_card.cache_clear()
    frames = read_run(run.path)
    assert card_of_run("./m", frames).folder == model
    assert cell_from_json(frames.rows[0]).card.name == "./m"

    spelled_otherwise = replace(PLAIN, models=("../here/m",))
    claim(run, spelled_otherwise)
    frames = read_run(run.path)
    assert len(frames.cells) == len(addresses)

    model.unlink()
    with expect_user_error(r"here/m .* is not there any more: move it back"):
        card_of_run("../here/m", frames)


@pytest.mark.usefixtures("local_copies")
def test_a_test_of_transfer_waits_for_its_source_and_never_trains(tmp_path):
    ce = replace(
        PLAIN, tasks=("gsm8k[source=corpus]",), base=False, recipe={"epochs": 2}
    )
    trained, tested = ce.cells
    run = RunDirectory(tmp_path / "run")
    claim(run, ce)
    assert run.missing(ce.cells) == {trained: "train", tested: "decode"}

    finish(run, trained)
    assert run.missing(ce.cells) == {tested: "decode"}

    shutil.rmtree(run.current(trained).checkpoint)
    # the test needs them
    assert run.missing(ce.cells) == {trained: "train", tested: "decode"}
    assert not run.missing([trained])

    decode(run, tested)
    assert run.missing(ce.cells) == {tested: "measure"}

    cells = read_run(run.path).cells
    assert list(cells.task) == ["gsm8k", "svamp"]
    assert list(cells.trained_on.astype("object").fillna("")) == ["", "gsm8k"]


def test_the_notes_of_a_cell_are_those_of_its_selection_too(tmp_path):
    run, cell = RunDirectory(tmp_path), trained_cell()
    claim(run, PLAIN)
    train(run, cell, right=0)
    assert run.notes(cell) == [
        "Acc (%) is 0 on validation at every epoch: one was selected by MAE."
    ]

    train(run, cell, right=1, weights="others")
    assert run.notes(cell) == []
