"""Clock-Time from the folder of Kaggle: what is read of it, and what is refused."""

import pytest
from PIL import Image
from smmd_bench.tasks._clock_data import TIMES
from smmd_bench.tasks.clock_time import ClockTime

from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.experiment.file import experiment_file
from smmd_bench.plugin_system.registry import load_task

NAMES = {"train": "train", "validation": "valid", "test": "test"}  # as Kaggle has them


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def kaggle(tmp_path, monkeypatch):
    """A small stand-in: all 144 times, one face of each in every split."""
    folder = tmp_path / "clock_time"
    lines = ["class index,filepaths,labels,data set"]
    for number, (hour, minute) in enumerate(TIMES):
        for face, split in enumerate(NAMES.values()):
            path = folder / split / f"{hour}-{minute:02}" / f"{face}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (number, face, face)).save(path)
            lines.append(f"{number},{path.relative_to(folder)},{hour}_{minute:02},{split}")
    (folder / "clocks.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("SMMD_BENCH_DATA", str(tmp_path))
    return folder


def test_a_kaggle_folder_is_read_as_it_is(kaggle):
    task = load_task("clock_time")
    for split, name in NAMES.items():
        examples = task.examples(split, 0)
        assert len(examples) == 144
        for example in examples:
            folder = f"{example.attributes['hour']}-{example.attributes['minute']:02}"
            assert example.images[0].parent == kaggle / name / folder
    assert task.identity("test", 0)["source"] == "kaggle"
    assert task.identity("test", 0) == task.identity("test", 1)


def replace_in_index(old, new):
    def spoil(folder):
        file = folder / "clocks.csv"
        file.write_text(file.read_text().replace(old, new))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (replace_in_index("train/1-00/0.jpg", "train/one.jpg"), "does not fit its folder"),
        (replace_in_index(",train\n", ",valid\n"), "has not all of the 144 times"),
        (replace_in_index("filepaths", "path"), "does not fit its folder"),
        (lambda folder: (folder / "train/1-00/0.jpg").unlink(), r"1 pictures .*1-00/0\.jpg"),
        (lambda folder: (folder / "clocks.csv").unlink(), r"no clock_time/clocks\.csv"),
    ],
)
def test_what_is_missing_or_wrong_in_it_is_named(kaggle, spoil, message):
    spoil(kaggle)
    with pytest.raises(UserError, match=message):
        ClockTime().examples("train", 0, 5)
    assert ClockTime(source="synthetic").examples("train", 0, 1)


def test_an_experiment_keeps_what_auto_means(kaggle, monkeypatch):
    real = Experiment(tasks=("clock_time",), losses=("ce",))
    assert real.tasks == ("clock_time[source=kaggle]",)
    assert "source=kaggle" in real.to_yaml()
    monkeypatch.delenv("SMMD_BENCH_DATA")
    drawn = Experiment(tasks=("clock_time",), losses=("ce",))
    assert drawn.tasks == ("clock_time",)
    assert drawn.name != real.name
    with pytest.raises(UserError, match="--data-dir"):
        _ = [cell.addresses for cell in experiment_file(real.to_yaml(), "e.yaml").cells]
    with pytest.raises(UserError, match="--data-dir"):
        ClockTime(source="kaggle").examples("train", 0)
