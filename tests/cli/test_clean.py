"""`smmd-bench clean`: what goes, what stays, and whether what it says of the cost is true."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

import smmd_bench as sb
from smmd_bench.cli import cli
from smmd_bench.decoding.selection import settle
from smmd_bench.errors import UserError
from smmd_bench.experiment.cell import Cell
from smmd_bench.results.frames import read_run
from smmd_bench.run.removal import remove, run_parts
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.files import read_json, write_json
from smmd_bench.storage.sizes import size_of
from tests.conftest import read_files
from tests.run.finished_cells import ALL, PLAIN, finish
from tests.runs import write_failure
from tests.tuned_runs import tuned_run

from .conftest import cell_folder

WEIGHTS = b"w" * 5000


@pytest.fixture
def run(run_folder, tmp_path):
    """A run with something of every part: NTL 0 failed, NTL 1 stopped, SMMD 1 was replaced."""
    run = Path(shutil.copytree(run_folder, tmp_path / "runs" / "one"))
    for cell in sb.read_run(run).cells.to_dict("records"):
        folder = run / "cells" / cell["address"]
        if cell["loss"] != "base":
            put(folder / "checkpoint" / "model.safetensors")
            last = read_json(folder / "train.json")["epochs"][-1]
            write_json(folder / "checkpoint" / "canary.json", last)
    failed, stopped, other = (cell_folder(run, *c) for c in (("ntl", 0), ("ntl", 1), ("smmd", 1)))
    for folder in (failed, stopped):
        (folder / "metrics.json").unlink()
        put(folder / "training" / "checkpoint-3" / "optimizer.pt")
        put(folder / "epochs" / "1" / "model.safetensors")
    write_failure(failed, {"stage": "train", "error": "NaN", "traceback": "..."})
    new = Path(shutil.copytree(other, run / "cells" / "0new"))
    content = read_json(new / "cell.json")
    write_json(new / "cell.json", {**content, "address": "0new"})
    listed = [a for a in sb.read_run(run).cells["address"] if a not in (other.name, "0new")]
    manifest = read_json(run / "manifest.json") or {}
    write_json(run / "manifest.json", {**manifest, "cells": [*listed, "0new"]})
    put(cell_folder(run, "ce", 0) / "epochs" / "4" / "model.safetensors")
    put(cell_folder(run, "ce", 1) / ".scores.parquet.123.part")
    put(run / "logs" / "train-1.log")
    return run


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(cache))
    for name in ("arithmetic/a.parquet", "clock_time/v1/1.png", "canary/1.png"):
        put(cache / name)
    put(cache / "digests" / "1.json")
    put(cache / "data" / "gsm8k" / "train.jsonl")
    put(cache / "somebody-elses" / "thesis.tex")
    monkeypatch.chdir(tmp_path)
    return cache


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(WEIGHTS)


def clean(*arguments: object, answers: str = "") -> Result:
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(cli, ["clean", *words], input=answers, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def test_every_part_is_listed_with_its_size_and_nothing_is_touched(run, tmp_path):
    before = read_files(tmp_path)
    listed = json.loads(clean("--json").output)
    sizes = {part["part"]: part["bytes"] for part in listed["parts"]}
    for name in ("failed", "replaced"):
        (part,) = [part for part in run_parts(run) if part.name == name]
        assert sizes.pop(name) == sum(size_of(path)[0] for path in part.paths)
    assert {name: size // len(WEIGHTS) for name, size in sizes.items()} == {
        "leftovers": 1, "logs": 1, "unfinished": 3, "epochs": 1, "checkpoints": 4,
        "cache-generated": 3, "cache-digests": 1, "cache-fetched": 1,
    }  # fmt: skip
    assert listed["removed_bytes"] == 0
    text = clean("--dry-run").output
    assert all(part["part"] in text for part in listed["parts"])
    assert "Nothing was removed." in text
    assert read_files(tmp_path) == before


def test_what_a_part_names_goes_and_all_else_stays(run, tmp_path):
    for name in ("leftovers", "logs", "failed", "unfinished", "epochs", "replaced", "checkpoints"):
        before = read_files(run)
        (part,) = [part for part in run_parts(run) if part.name == name]
        gone = {str(p.relative_to(run)) for p in part.paths}
        clean(run, "--what", name, "--yes")
        assert read_files(run) == {
            file: content
            for file, content in before.items()
            if not any(file == g or file.startswith(f"{g}/") for g in gone)
        }
        assert before != read_files(run)
    assert run_parts(run) == []


def test_what_reports_read_of_the_cells_that_count_stays(run_folder, tmp_path, cache):
    run = Path(shutil.copytree(run_folder, tmp_path / "runs" / "one"))
    put(cell_folder(run, "smmd", 0) / "checkpoint" / "model.safetensors")
    put(run / "logs" / "a.log")
    names = ("cells", "metrics", "comparisons", "selection", "completions", "probes", "train_log")
    before = [getattr(sb.read_run(run), name) for name in names]
    vectors = sb.read_run(run).read("probes", ["vector"])
    clean("--what", "all", "--yes")
    for frame, name in zip(before, names, strict=True):
        pd.testing.assert_frame_equal(getattr(sb.read_run(run), name), frame)
    pd.testing.assert_frame_equal(sb.read_run(run).read("probes", ["vector"]), vectors)
    assert not (run / "logs").exists()
    assert list(read_files(cache)) == ["somebody-elses/thesis.tex"]  # only our own folders of it go


def test_each_part_is_asked_for_and_no_is_the_default(run):
    result = clean(run, answers="\ny\n\n\n\n\n\n")
    assert "Remove leftovers of" in result.output
    assert not (run / "logs").exists()
    assert {part.name for part in run_parts(run)} == {
        "leftovers", "failed", "replaced", "unfinished", "epochs", "checkpoints",
    }  # fmt: skip
    before = read_files(run)
    assert "Nobody answers" in clean(run, answers="y\n").output
    assert read_files(run) == before


def test_a_run_leaves_the_cache_alone_unless_its_parts_are_named(run, cache):
    clean(run, "--what", "all", "--yes")
    assert (cache / "digests").exists()
    clean(run, "--what", "cache-digests", "--yes")
    assert not (cache / "digests").exists()
    assert (cache / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--yes"], "name the parts with --what"),
        (["--what", "lgs"], "did you mean logs?"),
        (["nowhere"], "is not a run folder"),
    ],
)
def test_a_mistake_is_said(arguments, words):
    with pytest.raises(UserError, match=words.replace("?", r"\?")):
        clean(*arguments)


def test_a_run_that_another_process_works_on_is_left_as_it_is(run):
    before = read_files(run)
    with RunDirectory(run).locked(), pytest.raises(UserError, match="Another process"):
        clean(run, "--what", "all", "--yes")
    assert read_files(run) == before


def test_a_link_goes_and_not_what_it_leads_to(run, tmp_path):
    target = tmp_path / "weights"
    put(target / "model.safetensors")
    mine = cell_folder(run, "ce", 0) / "checkpoint"
    shutil.rmtree(mine)
    mine.symlink_to(target)
    clean(run, "--what", "checkpoints", "--yes")
    assert not mine.is_symlink()
    assert (target / "model.safetensors").exists()


def test_a_folder_is_renamed_before_it_goes(tmp_path, monkeypatch):
    put(tmp_path / "checkpoint" / "canary.json")

    def killed(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("smmd_bench.run.removal.shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        remove([tmp_path / "checkpoint"])
    (left,) = tmp_path.glob(".checkpoint.*.part")
    assert (left / "canary.json").exists()
    assert not (tmp_path / "checkpoint").exists()


@pytest.fixture
def finished(tmp_path):
    """A run that `RunDirectory.missing` takes for finished, and its CE cell."""
    run = RunDirectory(tmp_path / "runs" / "finished")
    with run.locked():
        run.claim([PLAIN])
    for cell in PLAIN.cells:
        finish(run, cell)
    (trained,) = [cell for cell in PLAIN.cells if not cell.is_base]
    return run, trained


def cost(run: RunDirectory, name: str) -> str:
    (found,) = [part.cost for part in run_parts(run.path) if part.name == name]
    return found


def keep_epoch(run: RunDirectory, cell: Cell) -> None:
    """The checkpoint is among the epochs, too."""
    folder = run.cell_folder(cell)
    put(shutil.copytree(folder / "checkpoint", folder / "epochs" / "2") / "model.safetensors")


def test_a_measured_cell_without_its_checkpoint_is_trained_again_when_needed_as_is_said(finished):
    run, cell = finished
    assert run.missing(cell) == []
    assert cost(run, "checkpoints").startswith("nothing that is measured; other examples")
    clean(run.path, "--what", "checkpoints", "--yes")
    assert run.missing(cell) == []
    assert run.wanting([], [cell.addresses["train"]]).missing(cell) == ALL
    assert (read_run(run.path).cells["status"] == "done").all()


def test_a_checkpoint_whose_epoch_is_kept_can_go_for_nothing_as_is_said(finished):
    run, cell = finished
    keep_epoch(run, cell)
    assert "have the same weights among their epochs" in cost(run, "checkpoints")
    assert "again" not in cost(run, "checkpoints")
    clean(run.path, "--what", "checkpoints", "--yes")
    settle(cell, run.path)
    assert run.missing(cell) == []
    assert run.current(cell).checkpoint is not None


def test_epochs_logs_leftovers_and_the_cache_redo_nothing_as_is_said(finished):
    run, cell = finished
    keep_epoch(run, cell)
    put(run.path / "logs" / "a.log")
    put(run.cell_folder(cell) / "training" / "checkpoint-1" / "optimizer.pt")
    assert cost(run, "epochs").startswith("nothing, as long as")
    clean("--what", "epochs,logs,leftovers,cache-digests,cache-fetched,cache-generated", "--yes")
    for name in ("training", "epochs"):
        assert not (run.cell_folder(cell) / name).exists()
    assert run.missing(cell) == []


def test_a_trial_is_replaced_only_when_no_tuned_loss_names_it(tmp_path):
    run = tuned_run(tmp_path / "run").path
    assert "replaced" not in {part.name for part in run_parts(run)}
    manifest = read_json(run / "manifest.json") or {}
    kept = [a for a in manifest["cells"] if (run / "cells" / a / "choice.json").exists()]
    gone = [a for a in manifest["cells"] if a not in kept]
    write_json(run / "manifest.json", {**manifest, "cells": gone, "trials": []})
    (part,) = (part for part in run_parts(run) if part.name == "replaced")
    assert {path.name for path in part.paths} == {*kept, *manifest["trials"]}


def test_the_checkpoint_of_a_trial_is_one_of_a_finished_cell(tmp_path):
    run = tuned_run(tmp_path / "run").path
    (trial, *_) = (read_json(run / "manifest.json") or {})["trials"]
    put(run / "cells" / trial / "checkpoint" / "model.safetensors")
    (part,) = (part for part in run_parts(run) if part.name == "checkpoints")
    assert [path.parent.name for path in part.paths] == [trial]
