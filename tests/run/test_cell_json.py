"""The sizes of a manifest and of the plan are those of the data that is there."""

from collections.abc import Sequence
from typing import Any

import pytest

from smmd_bench.contracts import Split
from smmd_bench.experiment.cell import Cell
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.results.summary import summarise_cells
from smmd_bench.run.cell_json import describe_cells

from ..conftest import DATA

ASKED = {"train_examples": 64, "validation_examples": 8, "test_examples": 40}
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


@pytest.fixture(autouse=True)
def data(monkeypatch):
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA))


def said(experiment: Experiment) -> dict[str, Any]:
    """What the manifest says of the cells."""
    return summarise_cells(describe_cells(experiment.cells))


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
