"""What a change redoes, on a folder that holds what a finished run leaves (weights are empty)."""

import dataclasses
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from smmd_bench.tasks.arithmetic import Arithmetic

from smmd_bench.contracts import ExactMatch
from smmd_bench.decoding.selection import settle
from smmd_bench.errors import CellSkippedError, UserError
from smmd_bench.experiment.file import ExperimentFile
from smmd_bench.results.frames import read_run
from smmd_bench.run.pipeline import run_file
from smmd_bench.run.run_directory import RunDirectory, record_failure
from smmd_bench.scoring import statistics
from smmd_bench.storage.files import DamagedError, write_json

from ..conftest import read_files
from ..plugin_system.loss_file import LOSS
from .finished_cells import PLAIN, claim, finish, keep_epochs, rate, trained_cell


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path / "run")
    claim(run, PLAIN)
    for cell in PLAIN.cells:
        finish(run, cell)
    return run


def missing(run: RunDirectory, **changes: Any) -> str | None:
    """What is missing of the CE cell after a change, once selections are brought up to date."""
    changes["recipe"] = {**PLAIN.recipe, **changes.get("recipe", {})}
    (cell,) = [c for c in dataclasses.replace(PLAIN, **changes).cells if not c.is_base]
    settle(cell, run.path)
    return run.missing([cell]).get(cell)


def test_a_finished_run_misses_nothing_and_has_the_epoch_that_validates_best(run, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    run.require_place()  # a plan may be made of a run that may only be read
    assert missing(run) is None
    assert (read_run(run.path).cells.status == "done").all()
    now = run.current(trained_cell())
    assert now.selection["best_epoch"] == 2
    assert now.selection["epochs"][0]["mean_absolute_error"] is None  # none of its answers parses
    assert now.selection["epochs"][1]["exact_match"] == 75.0
    assert [folder.name for folder in (now.trained / "epochs").iterdir()] == ["2"]


@pytest.mark.parametrize(
    ("owner", "attribute"),
    [(Arithmetic, "version"), (ExactMatch, "version"), (statistics, "VERSION")],
)
def test_a_new_parser_metric_or_statistic_only_measures_again(run, monkeypatch, owner, attribute):
    monkeypatch.setattr(owner, attribute, 99)
    assert missing(run) == "measure"
    experiment = dataclasses.replace(PLAIN)
    claim(run, experiment)
    for cell in experiment.cells:
        settle(cell, run.path)
        rate(run, cell)
    assert (read_run(run.path).cells.status == "done").all()


@pytest.mark.parametrize(
    ("change", "stage"),
    [
        ({"recipe": {"test_examples": 3}}, "decode"),
        ({"recipe": {"learning_rate": 0.5}}, "train"),
        ({"recipe": {"validation_examples": 3}}, "train"),  # the other epoch's weights are gone
        ({"engine": "transformers"}, "train"),
    ],
)
def test_only_what_a_setting_can_change_is_done_again(run, change, stage):
    assert missing(run, **change) == stage
    keep_epochs(run, trained_cell())
    assert missing(run, **change) == ("decode" if "learning_rate" not in str(change) else stage)


def test_a_folder_of_several_experiments_is_one_in_their_order(tmp_path):
    run = RunDirectory(tmp_path / "run")
    parts = [dataclasses.replace(PLAIN, losses=losses) for losses in (("ce", "gce"), ("ntl", "ce"))]
    with run.locked():
        for part in (*parts, *parts):
            run.claim([part], "both")
    manifest = read_run(run.path).manifest
    assert manifest["name"] == "both"
    assert manifest["experiment"]["losses"] == ["ce", "gce", "ntl"]
    assert manifest["experiments"] == [part.to_dict() for part in parts]
    assert list(read_run(run.path).cells.loss) == ["base", "ce", "gce", "ntl"]


@pytest.mark.parametrize("number", [1, 2, 4, None])
def test_a_run_of_another_format_is_refused_with_the_command_that_converts_it(run, number):
    file = run.path / "manifest.json"
    write_json(file, {**json.loads(file.read_text()), "format": number})
    with pytest.raises(UserError, match=r"in the format .* with scripts/convert_run.py of"):
        read_run(run.path)
    with pytest.raises(UserError, match="in the format"):
        claim(run, PLAIN)


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / ".manifest.json.123.part").touch()  # of a killed process
    with RunDirectory(tmp_path).locked():
        pass
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UserError, match=r"no run \(thesis.tex\)"), RunDirectory(tmp_path).locked():
        pass


def test_a_plugin_file_is_copied_and_makes_no_other_experiment(run, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(LOSS.replace('"mine"', '"copied"'))
    experiment = dataclasses.replace(PLAIN, plugins=(str(file),))
    assert experiment.name == PLAIN.name
    run.require_own([experiment], extend=False)
    claim(run, experiment)
    run.require_own([PLAIN], extend=False)
    (copy,) = (run.path / "plugins").glob("*/mine.py")
    assert copy.read_text() == file.read_text()


@pytest.mark.parametrize(
    ("changes", "locked", "said"),
    [
        ({"losses": ("smmd",)}, False, "belongs to another experiment"),
        ({}, True, "Another process is working on"),
        ({"recipe": {**PLAIN.recipe, "max_length": 12}}, None, "--set max_length="),
    ],
)
def test_a_command_that_is_refused_leaves_the_folder_as_it_was(tmp_path, changes, locked, said):
    run, silent = RunDirectory(tmp_path / "run"), nullcontext(lambda *_: None)
    if locked is not None:
        claim(run, PLAIN)
    experiments, before = (dataclasses.replace(PLAIN, **changes),), read_files(run.path)
    with run.locked() if locked else nullcontext(), pytest.raises(UserError, match=said) as error:
        run_file(ExperimentFile(None, experiments), run.path, lambda: silent)
    assert "\n" not in str(error.value)
    assert read_files(run.path) == before


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
    tmp_path, error, said, skipped, users
):
    run, cell = RunDirectory(tmp_path), trained_cell()
    record_failure(tmp_path, run.current(cell).key, "decode", error)
    found = run.failure(cell)
    assert said in found["error"]
    assert (found["stage"], found["skipped"], found["user_error"]) == ("decode", skipped, users)
    last = error if isinstance(error, str) else type(error).__name__
    assert last in found["traceback"]
