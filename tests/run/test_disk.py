"""The bytes of weights against those that a training saves."""

import pytest

from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.loading import add_adapter, load_model
from smmd_bench.run.schedule import ENOUGH, disk_bytes


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
