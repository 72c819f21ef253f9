"""What a change redoes, on a folder that holds what a finished run leaves (weights are empty)."""

import dataclasses
import json
import os
import shutil
from typing import Any

import pytest
from smmd_bench.tasks.arithmetic import Arithmetic

from smmd_bench.contracts import ExactMatch
from smmd_bench.decoding.selection import settle
from smmd_bench.errors import UserError
from smmd_bench.results.frames import read_run
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.scoring import statistics
from smmd_bench.storage.files import read_json, write_json

from .finished_cells import ALL, PLAIN, claim, finish, rate, train, trained_cell


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path / "run")
    claim(run, PLAIN)
    for cell in PLAIN.cells:
        finish(run, cell)
    return run


def missing(run: RunDirectory, **changes: Any) -> list[str]:
    """What is missing of the CE cell after a change, once selections are brought up to date."""
    changes["recipe"] = {**PLAIN.recipe, **changes.get("recipe", {})}
    (cell,) = [c for c in dataclasses.replace(PLAIN, **changes).cells if not c.is_base]
    settle(cell, run.path)
    return list(run.missing(cell))


def test_a_finished_run_misses_nothing_and_has_the_epoch_that_validates_best(run):
    assert missing(run) == []
    assert (read_run(run.path).cells.status == "done").all()
    selection = read_json(run.cell_folder(trained_cell()) / "selection.json")
    assert selection["best_epoch"] == 2
    assert selection["epochs"][0]["mean_absolute_error"] is None  # none of its answers parses
    assert selection["epochs"][1]["exact_match"] == 75.0


@pytest.mark.parametrize(
    ("owner", "attribute"),
    [(Arithmetic, "version"), (ExactMatch, "version"), (statistics, "VERSION")],
)
def test_a_new_parser_metric_or_statistic_only_measures_again(run, monkeypatch, owner, attribute):
    monkeypatch.setattr(owner, attribute, 99)
    assert missing(run) == ["measure"]
    experiment = dataclasses.replace(PLAIN)
    claim(run, experiment)
    for cell in experiment.cells:
        settle(cell, run.path)
        rate(run, cell)
    assert (read_run(run.path).cells.status == "done").all()


def test_only_what_a_setting_can_change_is_done_again(run):
    assert missing(run, recipe={"test_examples": 3}) == ["decode", "measure"]
    assert missing(run, recipe={"learning_rate": 0.5}) == ALL


@pytest.mark.parametrize(
    "change",
    [{"recipe": {"validation_examples": 3}}, {"engine": "transformers"}],
    ids=["validation examples", "engine"],
)
def test_what_selects_an_epoch_trains_again_unless_every_epoch_was_kept(run, change):
    assert missing(run, **change) == ALL
    cell = trained_cell()
    for epoch in (1, 2):
        kept = {"epoch": epoch, "weights": f"weights {epoch}"}
        write_json(run.cell_folder(cell) / "epochs" / str(epoch) / "canary.json", kept)
    assert missing(run, **change) == ["decode", "measure"]
    write_json(run.cell_folder(cell) / "epochs" / "1" / "canary.json", {**kept, "epoch": 1})
    assert missing(run, **change) == ALL  # weights of another training


def test_a_claim_that_was_killed_half_way_is_completed(run):
    for cell in PLAIN.cells:
        (run.cell_folder(cell) / "cell.json").unlink()
    claim(run, PLAIN)
    assert len(read_run(run.path).cells) == 2


def test_an_extension_keeps_the_earlier_cells_and_the_earlier_command(run):
    more = dataclasses.replace(PLAIN, losses=("ntl",), base=False)
    claim(run, more, PLAIN, more)
    assert list(read_run(run.path).cells.loss) == ["base", "ce", "ntl"]


def test_a_folder_of_several_experiments_is_one_in_their_order(tmp_path):
    run = RunDirectory(tmp_path / "run")
    parts = [dataclasses.replace(PLAIN, losses=losses) for losses in (("ce", "gce"), ("ntl", "ce"))]
    with run.locked():
        for part in (*parts, *parts):
            run.claim([part], "both")
            manifest = json.loads((run.path / "manifest.json").read_text())
    assert manifest["name"] == "both"
    assert manifest["experiment"]["losses"] == ["ce", "gce", "ntl"]
    assert manifest["experiments"] == [part.to_dict() for part in parts]
    assert manifest["flags"] == [part.to_flags() for part in parts]
    assert list(read_run(run.path).cells.loss) == ["base", "ce", "gce", "ntl"]


def test_weights_that_were_trained_again_are_decoded_again_unless_they_are_the_same(run):
    cell = trained_cell()
    shutil.rmtree(run.cell_folder(cell) / "checkpoint")
    assert missing(run) == []
    assert missing(run, recipe={"test_examples": 3}) == ALL  # which needs the weights
    assert run.wanting([], [cell.addresses["train"]]).missing(cell) == ALL
    assert run.wanting([cell]).missing(cell) == []
    train(run, cell)
    assert missing(run) == []
    assert run.current(cell).checkpoint is not None
    assert not (run.cell_folder(cell) / "epochs").exists()
    train(run, cell, weights="other weights")
    assert missing(run) == ["decode", "measure"]
    assert read_run(run.path).cells.set_index("loss").loc["ce", "status"] == "pending"


def test_a_cell_takes_the_place_of_the_one_that_it_replaces(run):
    more = dataclasses.replace(PLAIN, losses=("ntl", "smmd"), base=False)
    recipe = {**PLAIN.recipe, "learning_rate": 0.5}
    claim(run, more, dataclasses.replace(more, losses=("ntl",), recipe=recipe))
    cells = read_run(run.path).cells
    assert list(cells.loss) == ["base", "ce", "ntl", "smmd"]
    assert cells.recipe[2]["learning_rate"] == 0.5
    assert read_run(run.path).manifest["experiment"]["losses"] == ["ce", "ntl", "smmd"]


def test_what_a_manifest_says_of_the_data_follows_from_its_cells(run):
    before = read_run(run.path).manifest
    claim(run, dataclasses.replace(PLAIN, recipe={**PLAIN.recipe, "test_examples": 3}))
    assert read_run(run.path).manifest["data"] != before["data"]
    claim(run, PLAIN)
    after = read_run(run.path).manifest
    assert {**after, "experiments": [], "flags": []} == {**before, "experiments": [], "flags": []}


def test_a_run_of_another_format_is_refused(run):
    file = run.path / "manifest.json"
    content = json.loads(file.read_text())
    for other in ({**content, "format": 1}, {k: v for k, v in content.items() if k != "format"}):
        write_json(file, other)
        with pytest.raises(UserError, match="in the format of another version of smmd-bench"):
            read_run(run.path)
    claim(run, dataclasses.replace(PLAIN, losses=("ntl",)))
    assert list(read_run(run.path).cells.loss) == ["base", "ntl"]


def test_a_folder_with_what_a_killed_process_had_begun_of_its_manifest_is_a_new_one(tmp_path):
    begun = tmp_path / ".manifest.json.123.part"
    begun.touch()
    with RunDirectory(tmp_path).locked():
        assert begun.exists()  # another process may be writing it
    os.utime(begun, (0, 0))
    with RunDirectory(tmp_path).locked():
        assert not begun.exists()


def test_a_plugin_file_is_found_from_anywhere_and_when_it_is_gone(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.py"
    file.write_text("# mine")
    claim(run, dataclasses.replace(PLAIN, plugins=("mine.py",)))
    run.keep_plugins()
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.py").write_text("# of another project")
    monkeypatch.chdir(other)
    assert run.plugin_files == [file]
    file.unlink()
    (kept,) = run.plugin_files
    assert kept.read_text() == "# mine"
    run.keep_plugins()  # there is nothing newer
    assert kept.read_text() == "# mine"


def test_weights_that_are_wanted_and_kept_among_the_epochs_are_not_trained_again(run):
    cell = trained_cell()
    shutil.rmtree(run.cell_folder(cell) / "checkpoint")
    run = run.wanting([], [cell.addresses["train"]])
    assert run.missing(cell) == ALL
    canary = run.cell_folder(cell) / "epochs" / "2" / "canary.json"
    write_json(canary, {"epoch": 2, "weights": "weights 2"})
    assert run.missing(cell) == ["decode", "measure"]


def test_a_folder_of_completions_made_elsewhere_belongs_to_another(tmp_path):
    write_json(tmp_path / "manifest.json", {"name": "scored", "cells": []})
    with pytest.raises(
        UserError, match=r"belongs to another experiment \(scored\): choose another"
    ):
        RunDirectory(tmp_path).require_own([PLAIN], extend=False)
