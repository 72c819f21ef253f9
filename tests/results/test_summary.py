"""What a manifest says of the data of its cells."""

import pytest

from smmd_bench.experiment.experiment import Experiment
from smmd_bench.results.summary import summarise_cells
from smmd_bench.run.cell_json import describe_cells


@pytest.mark.usefixtures("local_copies")
@pytest.mark.parametrize(
    "task", ["chartqa", "gsm8k[source=corpus]", "samsum[source=corpus]"]
)
def test_a_small_copy_counts_with_what_it_has_in_the_manifest_and_the_plan(task):
    recipe = {"train_examples": 64, "validation_examples": 8, "test_examples": 40}
    experiment = Experiment(tasks=(task,), losses=("ce",), base=False, recipe=recipe)
    cell, *transfers = experiment.cells
    data = summarise_cells(describe_cells(experiment.cells))["data"]
    is_smaller = []
    for split in cell.splits:
        used = len(cell.task_plugin.examples(split, 0, cell.size(split)))
        assert cell.examples_there(split) == used
        assert data[cell.task]["sizes"][split] == used
        assert data[cell.task]["there"][split] == len(
            cell.task_plugin.examples(split, 0)
        )
        is_smaller.append(used < cell.size(split))

    assert any(is_smaller)

    for transfer in transfers:
        assert data[transfer.task]["sizes"] == {"test": 11}
