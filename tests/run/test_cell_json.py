"""The sizes of a manifest and of the plan are those of the data that is there."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from smmd_bench.contracts import Split
from smmd_bench.experiment.cell import Cell
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.results.summary import what_the_cells_say
from smmd_bench.run.cell_json import describe_cells

from ..conftest import DATA

ASKED = {"train_examples": 64, "validation_examples": 8, "test_examples": 40}
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


@pytest.fixture(autouse=True)
def data(monkeypatch):
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA))


def said(experiment: Experiment) -> dict[str, Any]:
    """What the manifest says of the cells."""
    return what_the_cells_say(describe_cells(experiment.cells))


def cells_of(task: str, **recipe: int) -> tuple[Experiment, Sequence[Cell]]:
    experiment = Experiment(tasks=(task,), losses=("ce",), base=False, recipe={**ASKED, **recipe})
    return experiment, experiment.cells


@pytest.mark.parametrize("task", ["chartqa", "gsm8k[source=corpus]", "samsum[source=corpus]"])
def test_a_small_copy_counts_with_what_it_has(task):
    experiment, (cell, *transfers) = cells_of(task)
    made = {split: len(cell.task_plugin.examples(split, 0, cell.size(split))) for split in SPLITS}
    assert any(made[split] < cell.size(split) for split in SPLITS)
    assert {split: cell.examples_there(split) for split in SPLITS} == made
    data = said(experiment)["data"]
    assert data[cell.task]["sizes"] == made
    whole = {split: len(cell.task_plugin.examples(split, 0)) for split in SPLITS}
    assert data[cell.task]["there"] == whole
    for other in transfers:
        assert data[other.task]["sizes"] == {"test": 11}


def test_nothing_is_missing_where_no_more_is_asked_for():
    experiment, (cell,) = cells_of(
        "chartqa", train_examples=2, validation_examples=4, test_examples=2
    )
    assert [cell.examples_there(split) for split in SPLITS] == [2, 4, 2]
    assert not any(cell.shortage(split, cell.examples_there(split)) for split in SPLITS)
    data = said(experiment)["data"][cell.task]
    assert data["sizes"]["train"] == 2
    assert data["there"]["train"] == len(cell.task_plugin.examples("train", 0)) > 2
    experiment, (cell,) = cells_of("arithmetic")
    assert said(experiment)["data"][cell.task]["there"] == {}  # made, without end


def test_the_plan_says_what_is_there_and_what_is_missing(tmp_path):
    sizes = [f"--{name.replace('_', '-')}={size}" for name, size in ASKED.items()]
    arguments = ["train-eval", "--task", "chartqa", "--losses", "ce", *sizes, "--dry-run"]
    command = [str(Path(sys.executable).parent / "smmd-bench"), *arguments]
    out = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    assert "; train 13, validation 4, test 9." in out
    for split, there, asked in (("train", 13, 64), ("validation", 4, 8), ("test", 9, 40)):
        line = f"{split}: {there} of the {asked} examples asked for are there.\n"
        assert out.count(line) == 1
