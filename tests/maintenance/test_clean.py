"""`smmd-bench clean`: what goes, and what stays."""

import json
import shutil
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import smmd_bench as sb
from smmd_bench.cli import cli
from smmd_bench.maintenance.clean import find_run_parts
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.files import part_of
from tests.changed_runs import with_manifest
from tests.conftest import expect_user_error, read_files
from tests.tuned_runs import tuned_run

WEIGHTS = b"w" * 5000
PARTS = ("leftovers", "weights")


def stored(run, loss, seed):
    """A cell of the run."""
    frames = sb.read_run(run)
    cells = frames.cells.set_index(["loss", "seed"])
    return frames.current(cells.loc[(loss, seed), "address"])


@pytest.fixture
def run(run_folder, tmp_path):
    """A run with something of every part: NTL 1 stopped, SMMD 1 was replaced."""
    run = Path(shutil.copytree(run_folder, tmp_path / "runs/one"))
    for loss, seed in product(("ce", "smmd"), (0, 1)):
        put(stored(run, loss, seed).epoch(4) / "model.safetensors")

    stopped = stored(run, "ntl", 1)
    shutil.rmtree(stopped.measured)
    shutil.rmtree(stopped.trained)
    unfinished = part_of(stopped.trained)
    put(unfinished / "training/checkpoint-3/optimizer.pt")

    put(stored(run, "ce", 0).epoch(3) / "model.safetensors")
    put(run / "decode/.0123.part/completions.parquet")
    put(run / "measure/0123.damaged/metrics.json")
    put(run / "logs/train-1.log")

    frames = sb.read_run(run)
    replaced = stored(run, "smmd", 1).address
    rows = [cell for cell in frames.rows if cell["address"] != replaced]
    return with_manifest(frames, run, cells=rows).path


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(cache))
    for name in ("arithmetic/a.parquet", "clock_time/v1/1.png", "canary/1.png"):
        put(cache / name)
    put(cache / "digests/1.json")
    put(cache / "data/gsm8k/train.jsonl")
    put(cache / "somebody-elses/thesis.tex")
    monkeypatch.chdir(tmp_path)
    return cache


def put(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(WEIGHTS)


def clean(words):
    result = CliRunner().invoke(cli, f"clean {words}", standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def test_every_part_is_listed_with_its_size(run):
    listed = json.loads(clean("--json").output)
    sizes = {part["part"]: part["bytes"] // len(WEIGHTS) for part in listed["parts"]}
    assert sizes.pop("leftovers") >= 4
    assert sizes == {"weights": 5, "cache": 5}
    text = clean("").output
    assert all(name in text for name in ("leftovers", "weights", "cache"))


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("words", ["--json", "--what weights"])
def test_without_yes_nothing_is_touched(tmp_path, words):
    files = read_files(tmp_path)
    output = clean(words).output
    assert words == "--json" or "Nothing was removed" in output
    assert read_files(tmp_path) == files


@pytest.mark.parametrize("name", PARTS)
def test_what_a_part_names_goes_and_all_else_stays(run, name):
    files = read_files(run)
    (removed,) = [part for part in find_run_parts(run) if part.name == name]
    places = tuple(str(path.relative_to(run)) for path in removed.paths)
    clean(f"{run} --what {name} --yes")
    assert read_files(run) == {
        file: content for file, content in files.items() if not file.startswith(places)
    }
    assert files != read_files(run)
    assert name not in [part.name for part in find_run_parts(run)]


def test_what_reports_read_of_the_cells_that_count_stays(run, cache):
    def read_frames():
        frames = sb.read_run(run)
        names = (
            "metrics",
            "comparisons",
            "selection",
            "completions",
            "probes",
            "train_log",
        )
        return [getattr(frames, name) for name in names] + [
            frames.read("probes", ["vector"])
        ]

    before_cleaning = read_frames()
    clean("--what all --yes")
    for frame, expected in zip(read_frames(), before_cleaning, strict=True):
        pd.testing.assert_frame_equal(frame, expected)
    # only our own folders of it go
    assert list(read_files(cache)) == ["somebody-elses/thesis.tex"]


def test_a_run_that_another_process_works_on_is_left_as_it_is(run):
    files = read_files(run)
    with RunDirectory(run).locked(), expect_user_error("Another process"):
        clean(f"{run} --what all --yes")
    assert read_files(run) == files


def test_trials_are_of_the_tuned_loss_that_names_them(tmp_path):
    run = tuned_run(tmp_path / "run")
    clean(f"{run.path} --what leftovers --yes")
    trial = next(run.current(c["address"]).trials[0] for c in run.rows if "trials" in c)
    put(trial.epoch(4) / "model.safetensors")
    (weights,) = find_run_parts(run.path)
    assert weights.name == "weights"
    assert weights.paths == (trial.epoch(4),)


def test_the_cache_is_emptied_while_a_run_works(run, cache):
    with RunDirectory(run).locked():
        clean("--what cache --yes")
    assert {*read_files(cache)} == {"somebody-elses/thesis.tex"}
