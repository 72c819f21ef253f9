"""The estimate against its formula, written out for one cell."""

import pytest

from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.loading import add_adapter, load_model
from smmd_bench.run import estimate
from smmd_bench.run.estimate import disk_bytes, estimates
from smmd_bench.run.schedule import ENOUGH


def gpu_hours(cell, stages):
    return estimates({cell: stages})[cell].gpu_hours


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


def test_adapters_need_two_thirds_and_each_patch_of_a_picture_counts():
    full, adapters = (
        Experiment(("arithmetic",), ("ce",), recipe={"method": method}).cells[1]
        for method in ("full", "lora")
    )
    assert gpu_hours(adapters, ["train"]) == pytest.approx(2 / 3 * gpu_hours(full, ["train"]))
    few = {"train_examples": 8, "validation_examples": 8, "test_examples": 8}
    small, large = (
        Experiment(
            ("clock_time[source=synthetic]",), ("ce",), recipe={**few, "max_pixels": pixels}
        ).cells[1]
        for pixels in (28 * 28, 11 * 28 * 28)
    )
    vision = _blocks_of_the_vision_tower(small.card.folder)
    passes = small.card.parameter_count() + 3 * vision  # a token is 28 by 28 pixels, four patches
    a_token = 6 * passes * 8 * small.recipe.epochs / 0.33 / 312e12 / 3600
    more = gpu_hours(large, ["train"]) - gpu_hours(small, ["train"])
    assert more == pytest.approx(10 * a_token, rel=0.01)
    assert gpu_hours(small, ["train"]) > a_token


def _blocks_of_the_vision_tower(folder):
    model = load_model(folder, "float32")
    return sum(w.numel() for name, w in model.named_parameters() if "visual.blocks." in name)


@pytest.mark.parametrize("examples", [1, 40])
def test_seconds_are_operations_over_the_speed_here_and_the_starts_of_what_is_done(
    monkeypatch, examples
):
    monkeypatch.setattr(estimate, "_flops", lambda: 1e9)
    recipe = {"test_examples": examples, "validation_examples": 2, "train_examples": 3, "epochs": 2}
    base, cell = Experiment(("arithmetic",), ("ce",), recipe=recipe).cells
    sample = cell.task_plugin.examples("test", 0, min(20, examples))
    tokens = sum(len(e.prompt) + len(e.target) for e in sample) / 2.5 / len(sample)
    weights = cell.card.parameter_count()
    trained = 6 * weights * tokens * 3 * 2 / 1e9
    decoded = 2 * weights * tokens * 2 * (2 * examples + 2 * 2) / 1e9
    for stages, seconds in (
        ([], 0.0),
        (["measure"], 0.0),
        (["decode", "measure"], 2 + decoded),
        (["train", "decode", "measure"], 17 + trained + decoded),
    ):
        assert estimates({cell: stages})[cell].seconds == pytest.approx(seconds)
    assert estimates({base: ["train"]})[base].seconds == 0.0


@pytest.mark.parametrize("method", ["full", "lora"])
def test_the_disk_holds_one_checkpoint_a_cell_and_before_a_few_cells_epochs(method):
    recipe = {"method": method, "epochs": 15}
    experiment = Experiment(("arithmetic",), ("ce",), seeds=tuple(range(40)), recipe=recipe)
    cells = experiment.cells
    model = load_model(cells[1].card.folder, "float32")
    if method == "lora":
        model = add_adapter(model, cells[1].recipe)
    saved = 4 * sum(p.numel() for p in model.parameters() if p.requires_grad)
    end, peak = disk_bytes(cells, 2)
    assert end == pytest.approx(40 * saved, rel=0.01)
    waiting, states = 15 * (2 + 2 * 4), 2 * 2 * 3
    assert peak == pytest.approx((40 + waiting + states) * saved, rel=0.01)
    assert disk_bytes(cells[:1], 2) == (0, 0)


def test_the_disk_holds_the_largest_of_what_may_wait_at_the_same_time():
    one, many = (
        Experiment(
            ("arithmetic",), ("ce",), seeds=tuple(range(20)), base=False,
            recipe={"method": "full", "epochs": epochs},
        ).cells
        for epochs in (1, 10)
    )  # fmt: skip
    saved = 4 * one[0].card.parameter_count()
    end, peak = disk_bytes([*one, *many], 1)
    assert end == 40 * saved
    assert peak == end + (10 * (1 + 2 * ENOUGH) + 3 * 2) * saved
    recipe = {"method": "full", "epochs": 10, "keep_epochs": True}
    kept = Experiment(("arithmetic",), ("ce",), base=False, recipe=recipe).cells
    assert disk_bytes(kept, 1)[0] == 11 * saved
