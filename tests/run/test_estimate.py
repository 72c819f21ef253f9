"""The estimate against its formula, written out for one cell."""

import pytest

from smmd_bench.experiment.experiment import Experiment
from smmd_bench.run.estimate import gpu_hours, seconds


def test_gpu_hours_are_operations_over_an_a100():
    settings = {"train_examples": 1000, "validation_examples": 10, "test_examples": 20, "epochs": 3}
    experiment = Experiment(("arithmetic",), ("ce",), recipe=settings)
    base, cell = experiment.cells
    sample = cell.task_plugin.examples("test", 0, 20)
    tokens = sum(len(e.prompt) + len(e.target) for e in sample) / 2.5 / 20
    weights = cell.card.parameter_count()
    trained = 6 * weights * tokens * 3000 / 0.33
    decoded = 2 * weights * tokens * 2 * (40 + 30) / 0.05
    expected = (trained + decoded) / 312e12 / 3600
    assert gpu_hours(cell, ["train", "decode", "measure"]) == pytest.approx(expected)
    assert gpu_hours(cell, []) == 0
    assert gpu_hours(base, ["train", "decode", "measure"]) == pytest.approx(
        2 * weights * tokens * 2 * 40 / 0.05 / 312e12 / 3600
    )


def test_adapters_need_two_thirds_and_pictures_count():
    full, adapters = (
        Experiment(("arithmetic",), ("ce",), recipe={"method": method}).cells[1]
        for method in ("full", "lora")
    )
    assert gpu_hours(adapters, ["train"]) == pytest.approx(2 / 3 * gpu_hours(full, ["train"]))
    few = {"train_examples": 8, "validation_examples": 8, "test_examples": 8}
    clocks = Experiment(("clock_time",), ("ce",), recipe=few).cells[1]
    assert gpu_hours(clocks, ["train"]) > 0
    assert seconds(clocks, ["train"]) > 15
