"""Tests of transfer, which follow the cell that trained their weights."""

import dataclasses
import shutil

import pytest

from smmd_bench.experiment.experiment import Experiment
from smmd_bench.results.frames import read_run
from smmd_bench.run.run_directory import RunDirectory

from ..conftest import DATA
from .finished_cells import claim, decode, finish


@pytest.fixture
def words(monkeypatch):
    """GSM8K, with its test of transfer, in both losses."""
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA))
    return Experiment(tasks=("gsm8k[source=corpus]",), losses=("ce", "ntl"), recipe={"epochs": 1})


def test_a_test_of_transfer_waits_for_its_source_and_never_trains(tmp_path, words):
    ce = dataclasses.replace(words, losses=("ce",), base=False, recipe={"epochs": 2})
    trained, tested = ce.cells
    run = RunDirectory(tmp_path / "run")
    claim(run, ce)
    assert run.missing(ce.cells) == {trained: "train", tested: "decode"}
    finish(run, trained)
    assert run.missing(ce.cells) == {tested: "decode"}
    shutil.rmtree(run.current(trained).checkpoint)
    assert run.missing(ce.cells) == {trained: "train", tested: "decode"}  # the test needs them
    assert not run.missing([trained])
    decode(run, tested)
    assert run.missing(ce.cells) == {tested: "measure"}
    cells = read_run(run.path).cells
    assert list(cells.task) == ["gsm8k", "svamp"]
    assert list(cells.trained_on.astype("object").fillna("")) == ["", "gsm8k"]
