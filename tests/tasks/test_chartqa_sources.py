"""ChartQA's real data: the official folder and the hub's copy, whole and broken."""

import io
import json
import shutil

import datasets
import pytest
from PIL import Image
from smmd_bench.tasks._charts_rows import plain_number
from smmd_bench.tasks.chartqa import ChartQA

from smmd_bench.errors import UserError
from smmd_bench.plugin_system.registry import load_task

from ..conftest import DATA

TEST = "ChartQA Dataset/test"


@pytest.fixture
def official(tmp_path, monkeypatch):
    """A copy of the small official folder, given as the folder of local copies."""
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SMMD_BENCH_DATA", str(tmp_path / "data"))
    shutil.copytree(DATA / "chartqa", tmp_path / "data")
    return tmp_path / "data"


def change(folder, edit):
    """Edit the rows of the human questions."""
    file = folder / TEST / "test_human.json"
    rows = json.loads(file.read_text())
    edit(rows)
    file.write_text(json.dumps(rows))


def test_the_official_folder_is_read(official):
    task = ChartQA()
    examples = {e.uid: e for e in task.examples("test", 0)}
    assert task.data_label == "official"
    assert task.licence.startswith("GPL-3.0")
    assert len(examples) == 9
    human = examples["chartqa-official-test-human-4"]
    assert human.prompt == "Question: What is the change from first to last?\nAnswer:"
    assert human.target == " -3.5"
    assert human.images == (official / TEST / "png" / "1057.png",)
    assert dict(human.attributes) == {"origin": "human"}
    assert {e.attributes["origin"] for e in examples.values()} == {"human", "augmented"}
    assert all(task.parse(e.target) == e.answer for e in examples.values())
    identity = task.identity("test", 0)
    assert (identity["source"], identity["kept"]) == ("official", 9)
    assert identity["dropped"] == {"not a number": 2, "written otherwise": 1}
    assert task.identity("train", 0)["dropped"] == {"not a number": 1, "written otherwise": 1}


@pytest.mark.parametrize("place", [".", "chartqa"])
def test_the_folder_may_lie_in_one_of_that_name(official, place, monkeypatch):
    inner = official / "ChartQA Dataset"
    if place == ".":
        monkeypatch.setenv("SMMD_BENCH_DATA", str(inner))
    else:
        shutil.move(inner, official / "chartqa" / "ChartQA Dataset")
    assert len(ChartQA().examples("validation", 0)) == 4


def test_the_seed_orders_train_and_validation_and_leaves_the_test(official):
    task = ChartQA()
    (train, other), (test, same) = (
        [[e.uid for e in task.examples(split, seed)] for seed in (0, 1)]
        for split in ("train", "test")
    )
    assert train != other
    assert sorted(train) == sorted(other)
    assert test == same
    assert [e.uid for e in task.examples("train", 0, 3)] == train[:3]
    assert task.identity("train", 0) != task.identity("train", 1)
    assert task.identity("test", 0) == task.identity("test", 1)


def test_the_identity_is_the_content(official):
    task = ChartQA()
    before = task.identity("test", 0)
    change(official, lambda rows: rows[0].update(query="Another?"))
    asked = task.identity("test", 0)
    assert asked["questions"] != before["questions"]
    assert asked["images"] == before["images"]
    picture = official / TEST / "png" / "1057.png"
    picture.unlink()
    Image.new("RGB", (20, 20), "red").save(picture)
    assert task.identity("test", 0)["images"] != before["images"]


def test_an_absent_picture_is_named_and_counted(official):
    (official / TEST / "png" / "1057.png").unlink()
    message = r"1057\.png is absent \(1 of the 4 images .*\): copy the official folder again\."
    for read in (ChartQA().examples, ChartQA().identity):
        with pytest.raises(UserError, match=message):
            read("test", 0)


def test_only_the_pictures_of_the_examples_asked_for_are_read(official):
    first = ChartQA().examples("test", 0, 1)[0].images[0]
    for picture in (official / TEST / "png").iterdir():
        if picture != first:
            picture.unlink()
    assert ChartQA().examples("test", 0, 1)[0].images == (first,)


def human_rows(edit):
    return lambda folder: change(folder, edit)


def human_text(content):
    return lambda folder: (folder / TEST / "test_human.json").write_bytes(content)


def without(name):
    """The folder, moved away in part."""
    return lambda folder: (folder / name).rename(folder / "away")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without("ChartQA Dataset"), r"test/test_human\.json.*chartqa\[source=synthetic\]"),
        (without(f"{TEST}/test_augmented.json"), r"test_augmented\.json is missing"),
        (human_rows(lambda rows: rows[2].pop("label")), r"human\.json .*\(row 3 has no label\)"),
        (
            human_rows(lambda rows: rows[1].update(imgname="../x.png")),
            "Row 2 of .*not a plain file",
        ),
        (human_rows(lambda rows: rows.insert(0, "text")), "is not a list of rows"),
        (human_text(b"[{"), r"test_human\.json is not a readable json file"),
        (human_text(b'{"a": 1}'), "is not a list of rows"),
        (human_text(b"\xff"), r"test_human\.json is not a readable json file"),
    ],
)
def test_what_is_missing_or_broken_is_named(official, spoil, message):
    spoil(official)
    with pytest.raises(UserError, match=message):
        ChartQA().examples("test", 0)
    assert load_task("chartqa[source=synthetic]").examples("test", 0, 1)


@pytest.mark.parametrize("label", ["62", "0.57", "-3.5", " 14 ", "1e5", ".5"])
def test_plain_numbers_are_kept(label):
    value = plain_number(label)
    assert ChartQA().parse(f" {label.strip()}").value == value == pytest.approx(float(label))


def test_what_is_no_plain_number_is_dropped():
    for label in ("62%", "1,234", "$5", "3/4", "1_000", "nan", "inf", "1e400", "٣", "Yes", "",
                  "12 and 15", "0x10", "2014-15"):  # fmt: skip
        assert plain_number(label) is None, label


def picture(colour):
    stream = io.BytesIO()
    Image.new("RGB", (30, 20), colour).save(stream, format="PNG")
    return {"bytes": stream.getvalue(), "path": None}


@pytest.fixture
def no_copy(tmp_path, monkeypatch):
    monkeypatch.delenv("SMMD_BENCH_DATA", raising=False)
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path))


@pytest.mark.usefixtures("no_copy")
def test_the_hubs_copy_is_kept_as_files(tmp_path, monkeypatch):
    """The hub is out of reach: `load_dataset` is made up, the data set that it gives is not."""
    asked = []
    features = datasets.Features(
        image=datasets.Image(),
        query=datasets.Value("string"),
        label=datasets.List(datasets.Value("string")),
        human_or_machine=datasets.ClassLabel(names=["human", "machine"]),
    )
    rows = {
        "image": [picture("red"), picture("blue"), picture("red"), picture("blue")],
        "query": ["How  high?", "How low?", "Which?", "How many?"],
        "label": [["14"], ["0.57"], ["Lima"], ["3", "4"]],
        "human_or_machine": [0, 1, 0, 1],
    }

    def load_dataset(repository, *, split, revision):
        asked.append((repository, split, revision))
        return datasets.Dataset.from_dict(rows, features)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    task = load_task("chartqa[source=hub]")
    examples = {e.uid: e for e in task.examples("validation", 0)}
    assert set(examples) == {"chartqa-hub-validation-human-0", "chartqa-hub-validation-augmented-1"}
    first = examples["chartqa-hub-validation-human-0"]
    assert (first.prompt, first.target) == ("Question: How high?\nAnswer:", " 14")
    assert first.images[0].read_bytes() == picture("red")["bytes"]
    assert len(list(tmp_path.rglob("*.png"))) == 2
    identity = task.identity("validation", 0)
    assert (identity["source"], identity["kept"]) == ("hub", 2)
    assert identity["dropped"] == {"not a number": 2}
    assert asked == [("HuggingFaceM4/ChartQA", "val", "main")]


@pytest.mark.usefixtures("no_copy")
def test_a_hub_out_of_reach_says_how_to_get_the_data(tmp_path):
    with pytest.raises(UserError, match=r"smmd-bench prepare 'chartqa\[source=hub\]'.*--data-dir"):
        load_task("chartqa[source=hub]").examples("test", 0, 1)
    assert not list(tmp_path.rglob("*.jsonl"))
