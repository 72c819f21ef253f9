import pytest
from smmd_bench.reports.dataset_sizes import DatasetSizes, dataset_sizes

import smmd_bench as sb
from smmd_bench.storage.files import write_json
from tests.reports.golden import words

SIZES = {
    "gsm8k": {"train": 6973, "validation": 500, "test": 1319},
    "svamp": {"test": 1000},
    "arithmetic[level=easy,operations=1..2]": {"train": 12000, "validation": 500, "test": 2000},
    "clock_time[source=kaggle]": {"train": 9000, "validation": 1000, "test": 1440},
    "chartqa": {"train": 320, "validation": 40, "test": 100},
}
SOURCES = {"clock_time[source=kaggle]": "kaggle", "chartqa": "synthetic"}


def run_of(folder, *tasks):
    data = {
        task: {
            "sizes": SIZES.get(task, {"test": 40}),
            "identity": {"test": {"source": SOURCES.get(task)}},
        }
        for task in tasks
    }
    write_json(folder / "manifest.json", {"name": "sizes", "experiment": {}, "data": data})
    return sb.read_run(folder)


def test_sizes_are_those_of_the_manifest_in_its_order(tmp_path):
    data = dataset_sizes(run_of(tmp_path, *SIZES))
    assert list(data["task"]) == list(SIZES)
    found = data.set_index("task")[["train", "validation", "test"]]
    kept = {task: row.dropna().to_dict() for task, row in found.iterrows()}
    assert kept == SIZES


def test_the_papers_sizes_stand_beside_its_own_tasks_and_data_alone(tmp_path):
    table = DatasetSizes().build(run_of(tmp_path, *SIZES)).table.set_index("Task")
    assert table[["Paper train", "Paper test"]].to_numpy().tolist() == [
        ["7,470", "1,320"], ["–", "1,000"], ["–", "–"], ["11,520", "1,440"], ["–", "–"],
    ]  # fmt: skip
    assert table.loc["svamp", "Train"] == "–"
    assert table.loc["chartqa", "Data"] == "synthetic"


def test_without_a_task_of_the_paper_there_are_no_columns_for_it(tmp_path):
    artefact = DatasetSizes().build(run_of(tmp_path, "arithmetic[level=easy,operations=1..2]"))
    assert list(artefact.table) == ["Task", "Train", "Validation", "Test"]
    assert "Table 8 of the paper has none of these tasks" in words(artefact)


def test_the_paper_is_not_named_for_an_own_task(tmp_path):
    assert "paper" not in words(DatasetSizes().build(run_of(tmp_path, "temperature")))


@pytest.mark.parametrize("data", [{}, {"gsm8k": {"identity": {}}}])
def test_a_manifest_without_sizes_is_skipped(data, tmp_path):
    write_json(tmp_path / "manifest.json", {"name": "x", "experiment": {}, "data": data})
    said = "the run's manifest does not say how many examples it has"
    assert DatasetSizes().skip(sb.read_run(tmp_path)) == said
