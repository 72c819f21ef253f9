"""What a change redoes, on a folder that holds what a finished run leaves (weights are empty)."""

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from smmd_bench.tasks.arithmetic import Arithmetic

from smmd_bench.contracts import ExactMatch
from smmd_bench.decoding.selection import settle
from smmd_bench.errors import CellSkippedError, UserError
from smmd_bench.experiment.cell import Cell
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.results.frames import read_run
from smmd_bench.run.run_directory import RunDirectory, record_failure
from smmd_bench.scoring import statistics
from smmd_bench.scoring.measure import measure
from smmd_bench.storage.current import BASE
from smmd_bench.storage.files import DamagedError, read_json, write_json, write_parquet

from ..conftest import DATA

PLAIN = Experiment(
    tasks=("arithmetic",),
    losses=("ce",),
    recipe={"epochs": 2, "validation_examples": 4, "test_examples": 4},
)
ALL = ["train", "decode", "measure"]


def completions(right: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "uid": [f"{i}" for i in range(4)],
            "prompt": "?",
            "target": ["1", "2", "3", "4"],
            "completion": [str(i + 1) if i < right else "no number" for i in range(4)],
            "finish_reason": "stop",
            "completion_tokens": 2,
            "prompt_tokens": 1,
            "operations": 1,
        }
    )


def claim(run: RunDirectory, *experiments: Experiment) -> None:
    """Claim the folder for one experiment after another."""
    with run.locked():
        for experiment in experiments:
            run.claim([experiment])


def trained_cell() -> Cell:
    (cell,) = [cell for cell in PLAIN.cells if not cell.is_base]
    return cell


def finish(run: RunDirectory, cell: Cell, *, best: int = 2) -> None:
    """Write the files of a finished cell."""
    train(run, cell, best=best)
    decode(run, cell)
    rate(run, cell)


def train(run: RunDirectory, cell: Cell, *, best: int = 2, weights: str = "weights") -> None:
    """Write what training and selection leave."""
    folder = run.cell_folder(cell)
    epochs = [0] if cell.is_base else [1, 2]
    lines = [{"epoch": e, "weights": BASE if cell.is_base else f"{weights} {e}"} for e in epochs]
    receipt = {"address": cell.addresses["train"], "kind": "full", "epochs": lines}
    write_json(folder / "train.json", receipt)
    if not cell.is_base:
        for line in lines:
            write_json(folder / "epochs" / str(line["epoch"]) / "canary.json", line)
        frames = [completions(3 if epoch == best else 0).assign(epoch=epoch) for epoch in epochs]
        stamp = run.current(cell).validation_stamp
        write_parquet(folder / "validation.parquet", pd.concat(frames), stamp)
        settle(cell, run.path)


def decode(run: RunDirectory, cell: Cell) -> None:
    """Write completions and probes of the selected weights."""
    stamp = run.current(cell).decode_stamp
    assert stamp is not None
    write_parquet(run.cell_folder(cell) / "completions.parquet", completions(2), stamp)
    write_parquet(run.cell_folder(cell) / "probes.parquet", completions(2)[["uid"]], stamp)


def rate(run: RunDirectory, cell: Cell) -> None:
    """Write scores and metrics."""
    stamp = run.current(cell).measure_stamp
    assert stamp is not None
    scores, metrics = measure(cell.task_plugin, completions(2))
    write_parquet(run.cell_folder(cell) / "scores.parquet", scores, stamp)
    write_json(run.cell_folder(cell) / "metrics.json", {"address": stamp, **metrics})


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path / "run")
    claim(run, PLAIN)
    for cell in PLAIN.cells:
        finish(run, cell)
    return run


@pytest.fixture
def words(monkeypatch):
    """GSM8K, with its test of transfer, in both losses."""
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA))
    return Experiment(tasks=("gsm8k[source=corpus]",), losses=("ce", "ntl"), recipe={"epochs": 1})


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


def test_a_test_of_transfer_waits_for_its_source_and_never_trains(tmp_path, words):
    ce = dataclasses.replace(words, losses=("ce",), base=False, recipe={"epochs": 2})
    trained, tested = ce.cells
    run = RunDirectory(tmp_path / "run")
    claim(run, ce)
    assert run.missing(trained) == ALL
    assert run.missing(tested) == ["decode", "measure"]
    finish(run, trained)
    assert run.missing(trained) == []
    assert run.missing(tested) == ["decode", "measure"]
    decode(run, tested)
    assert run.missing(tested) == ["measure"]
    cells = read_run(run.path).cells
    assert list(cells.task) == ["gsm8k", "svamp"]
    assert list(cells.trained_on.astype("object").fillna("")) == ["", "gsm8k"]


def test_an_extension_that_would_mix_two_trainings_in_one_test_is_refused(tmp_path, words):
    kept = dataclasses.replace(
        words, tasks=("gsm8k[source=corpus,calculator=keep]",), losses=("ce",)
    )
    run = RunDirectory(tmp_path / "run")
    claim(run, words)
    before = (run.path / "manifest.json").read_bytes()
    with pytest.raises(UserError, match="has svamp as the test of gsm8k, and this experiment"):
        run.require_own([kept], extend=True)
    assert (run.path / "manifest.json").read_bytes() == before
    claim(run, dataclasses.replace(kept, transfers=False))
    data = read_run(run.path).manifest["data"]
    assert set(data) == {"gsm8k", "svamp", "gsm8k[calculator=keep]"}
    assert data["svamp"]["sizes"] == {"test": 11}
    assert set(data["gsm8k"]["identity"]) == {"train", "validation", "test"}
    assert data["svamp"]["identity"]["test"]["digest"]


def test_a_test_of_transfer_goes_with_the_cell_that_trained_its_weights(tmp_path, words):
    ce = dataclasses.replace(words, losses=("ce",), base=False)
    run = RunDirectory(tmp_path / "run")
    claim(run, ce, dataclasses.replace(ce, losses=("ntl",)))
    assert sorted(read_run(run.path).cells.task) == ["gsm8k"] * 2 + ["svamp"] * 2
    claim(run, dataclasses.replace(ce, recipe={"epochs": 3}, transfers=False))
    cells = read_run(run.path).cells
    assert sorted(zip(cells.loss, cells.task, strict=True)) == [
        ("ce", "gsm8k"), ("ntl", "gsm8k"), ("ntl", "svamp"),
    ]  # fmt: skip


def test_weights_that_were_trained_again_are_decoded_again_unless_they_are_the_same(run):
    cell = trained_cell()
    shutil.rmtree(run.cell_folder(cell) / "checkpoint")
    assert missing(run) == ALL
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


def test_a_finished_cell_whose_kept_epoch_is_the_selected_one_is_not_trained_again(run):
    cell = trained_cell()
    shutil.rmtree(run.cell_folder(cell) / "checkpoint")
    assert run.missing(cell) == ALL
    canary = run.cell_folder(cell) / "epochs" / "2" / "canary.json"
    write_json(canary, {"epoch": 2, "weights": "weights 2"})
    assert run.missing(cell) == ["decode", "measure"]


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
    (run.cell_folder(cell) / "metrics.json").unlink()
    record_failure(run.cell_folder(cell), "decode", error)
    found = run.failure(cell)
    assert said in found["error"]
    assert (found["stage"], found["skipped"], found["user_error"]) == ("decode", skipped, users)
    last = error if isinstance(error, str) else type(error).__name__
    assert last in found["traceback"]


def test_a_folder_of_completions_made_elsewhere_belongs_to_another(tmp_path):
    write_json(tmp_path / "manifest.json", {"name": "scored", "cells": []})
    with pytest.raises(
        UserError, match=r"belongs to another experiment \(scored\): choose another"
    ):
        RunDirectory(tmp_path).require_own([PLAIN], extend=False)
