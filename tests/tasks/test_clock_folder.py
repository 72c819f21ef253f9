"""Clock-Time from the folder of Kaggle: what is read of it, and what is refused."""

import shutil
from pathlib import Path

import pytest
from PIL import Image
from smmd_bench.tasks import _clock_folder
from smmd_bench.tasks._clock_index import TIMES
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
    assert task.data_label == "Kaggle"
    for split, name in NAMES.items():
        examples = task.examples(split, 0)
        assert len(examples) == 144
        for example in examples:
            folder = f"{example.attributes['hour']}-{example.attributes['minute']:02}"
            assert example.images[0].parent == kaggle / name / folder
    assert task.identity("test", 0)["source"] == "kaggle"
    assert task.identity("test", 0) == task.identity("test", 1)


def test_the_identity_follows_the_bytes_of_the_pictures_and_names_an_absent_one(kaggle):
    task = ClockTime()
    before = task.identity("test", 0)
    Image.new("RGB", (8, 8), (1, 2, 3)).save(kaggle / "test" / "4-20" / "2.jpg")
    _clock_folder._digest.cache_clear()  # another process
    assert task.identity("test", 0) != before
    assert task.identity("train", 0) == ClockTime().identity("train", 0)
    (kaggle / "valid" / "1-00" / "1.jpg").unlink()
    with pytest.raises(UserError, match=r"1 of the 144 validation pictures .*1-00/1\.jpg"):
        ClockTime().identity("validation", 0)


def spoil_pictures(change, *names):
    return lambda folder: [change(folder / "train" / name) for name in names]


def spoil_index(change):
    def spoil(folder):
        file = folder / "clocks.csv"
        file.write_text(change(file.read_text()))

    return spoil


ROWS = {  # one row more: what is said of it
    "575,test/12-55/2.jpg,12_55,train": "line 434: .*is not in the folder train/12-55 of its label",
    "575,train/12-55/0.jpg,12_55,train": r"clocks\.csv, line 434: .*is listed twice",
    "575,valid/12-55/0.jpg,12_55,validation": "line 434: .*the data set 'validation' is none of",
    "575,train/12-55/one.jpg,12_55,train": "line 434: .*is not a picture such as",
    "575,train/12-55/7.jpg": "line 434: .*the label 'None' is not a time",
}
LABELS = {  # another label of the first row: what is said of it
    **dict.fromkeys(
        ["25_00", "1_75", "noon", ""], r"csv, line 2: the label .* is not a time .*: correct it"
    ),
    "2_00": r"line 2: .* is not in the folder train/2-00 of its label",
}
SPOILT = [
    *[(spoil_index(lambda all, row=row: f"{all}{row}\n"), said) for row, said in ROWS.items()],
    *[
        (spoil_index(lambda all, new=new: all.replace(",1_00,train", f",{new},train")), said)
        for new, said in LABELS.items()
    ],
    (
        spoil_pictures(Path.unlink, "1-00/0.jpg", "1-05/0.jpg"),
        r"2 of the 144 train pictures .*1-00/0\.jpg",
    ),
    (
        spoil_index(lambda all: "\n".join(r for r in all.splitlines() if "/3-" not in r) + "\n"),
        r"no train picture of 12 of the 144 times, .* 3:00",
    ),
    (
        spoil_index(lambda all: all.replace(",1_00,", ",noon,").replace(",2_05,", ",x,")),
        r"line 2: .*\(6 rows of it have a mistake\)",
    ),
    (spoil_index(lambda all: "a,b\n1,2\n"), "has no column 'filepaths'"),
    (
        lambda folder: (folder / "clocks.csv").unlink(),
        r"has no clock_time/clocks\.csv.*source=synthetic",
    ),
]


@pytest.mark.parametrize(("spoil", "message"), SPOILT)
def test_what_is_missing_or_wrong_in_it_is_named(kaggle, spoil, message):
    spoil(kaggle)
    with pytest.raises(UserError, match=message):
        ClockTime().examples("train", 0, 5)
    assert ClockTime(source="synthetic").examples("train", 0, 1)


@pytest.mark.parametrize("index", [1, 0.5], ids=["all times", "half of the times"])
@pytest.mark.parametrize("classes", ["all", "there"])
def test_where_no_picture_is_there_some_of_the_times_are_not_offered(kaggle, index, classes):
    file = kaggle / "clocks.csv"
    lines = file.read_text().splitlines()
    file.write_text("\n".join(line for at, line in enumerate(lines) if at <= index * len(lines)))
    shutil.rmtree(kaggle / "train")
    with pytest.raises(UserError, match="copy the whole data set again") as error:
        ClockTime(classes=classes).examples("train", 0)
    assert "classes=there" not in str(error.value)


def test_a_folder_with_some_of_the_times_can_be_used(kaggle):
    for name in NAMES.values():
        for folder in sorted((kaggle / name).iterdir())[5:]:
            shutil.rmtree(folder)
    with pytest.raises(UserError, match=r"classes=there"):
        ClockTime().examples("train", 0)
    task = load_task("clock_time[classes=there]")
    examples = task.examples("train", 0)
    assert len(examples) == task.identity("train", 0)["kept"] == 5
    assert {e.images[0].parent for e in examples} == {*(kaggle / "train").iterdir()}
    whole = task.identity("test", 0)
    shutil.rmtree(next((kaggle / "test").iterdir()))
    assert task.identity("test", 0)["digest"] != whole["digest"]
    (examples[0].images[0]).unlink()
    with pytest.raises(UserError, match="1 of the 5 train pictures"):
        task.examples("train", 0)


@pytest.mark.parametrize("classes", ["all", "there"])
@pytest.mark.parametrize(("there", "renamed"), [("1-05", "01-05"), ("1-05/0.jpg", "1-05/000.jpg")])
def test_names_that_differ_in_zeros_alone_are_said_to(kaggle, there, renamed, classes):
    if classes == "there":
        for folder in (kaggle / "train").iterdir():
            if folder.name != "1-05":
                shutil.rmtree(folder)
        spoil_index(
            lambda text: (
                "\n".join(r for r in text.splitlines() if "/1-05/" in r or "filepaths" in r) + "\n"
            )
        )(kaggle)
    (kaggle / "train" / there).rename(kaggle / "train" / renamed)
    found = "train/01-05/0.jpg" if "/" not in renamed else f"train/{renamed}"
    with pytest.raises(UserError, match=f"has {found}, whose name differs in zeros alone"):
        ClockTime(classes=classes).examples("train", 0)


def test_an_experiment_keeps_what_auto_means(kaggle, monkeypatch):
    real = Experiment(tasks=("clock_time",), losses=("ce",))
    assert real.tasks == ("clock_time[source=kaggle]",)
    assert "source=kaggle" in real.to_yaml()
    assert "source=kaggle" in real.to_flags()
    monkeypatch.delenv("SMMD_BENCH_DATA")
    drawn = Experiment(tasks=("clock_time",), losses=("ce",))
    assert drawn.tasks == ("clock_time",)
    assert drawn.name != real.name
    with pytest.raises(UserError, match="--data-dir"):
        _ = [cell.addresses for cell in experiment_file(real.to_yaml(), "e.yaml").cells]
    with pytest.raises(UserError, match="--data-dir"):
        ClockTime(source="kaggle").examples("train", 0)
