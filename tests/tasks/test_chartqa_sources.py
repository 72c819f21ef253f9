"""ChartQA's real data, the official folder, whole and broken."""

import json
import shutil

import pytest
from PIL import Image
from smmd_bench.tasks._charts_sources import plain_number
from smmd_bench.tasks.chartqa import ChartQA

from ..conftest import DATA, expect_user_error

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
    examples = task.examples("test", 0)
    assert task.data_label == "official"
    assert task.licence.startswith("GPL-3.0")
    assert len(examples) == 9
    for example in examples:
        assert task.parse(example.target) == example.answer
    assert {e.attributes["origin"] for e in examples} == {"human", "augmented"}

    (human,) = [e for e in examples if e.uid == "chartqa-official-test-human-4"]
    assert human.prompt == "Question: What is the change from first to last?\nAnswer:"
    assert human.target == " -3.5"
    assert human.images == (official / TEST / "png/1057.png",)
    assert dict(human.attributes) == {"origin": "human"}


@pytest.mark.usefixtures("official")
def test_the_identity_counts_what_was_dropped():
    train, test = (ChartQA().identity(split, 0) for split in ("train", "test"))
    assert train["dropped"] == {"not a number": 1, "written otherwise": 1}
    assert test["dropped"] == {"not a number": 2, "written otherwise": 1}
    assert test["source"] == "official"
    assert test["kept"] == 9


def test_the_identity_is_the_content(official, tmp_path, monkeypatch):
    def identity(name, edit):
        folder = shutil.copytree(official, tmp_path / name)
        monkeypatch.setenv("SMMD_BENCH_DATA", str(folder))
        edit(folder)
        return ChartQA().identity("test", 0)

    original = identity("same", lambda folder: None)
    other_question = identity(
        "asked", lambda f: change(f, lambda rows: rows[0].update(query="?"))
    )
    assert other_question["questions"] != original["questions"]
    assert other_question["images"] == original["images"]
    red = Image.new("RGB", (20, 20), "red")
    other_picture = identity(
        "shown", lambda folder: red.save(folder / TEST / "png/1057.png")
    )
    assert other_picture["images"] != original["images"]
    with expect_user_error(r"1057\.png is absent: copy "):
        identity("absent", lambda folder: (folder / TEST / "png/1057.png").unlink())


def test_what_is_broken_or_missing_is_named(official):
    human, augmented = (
        official / TEST / f"test_{name}.json" for name in ("human", "augmented")
    )
    original = human.read_text()

    def refused(message):
        with expect_user_error(message):
            ChartQA().examples("test", 0)

    change(official, lambda rows: rows[2].pop("label"))
    refused(r"human\.json .*\(row 3 has no label\)")
    human.write_text(original)
    change(official, lambda rows: [row.update(label="62%") for row in rows])
    shutil.copy(human, augmented)
    refused("has a number for an answer")
    augmented.unlink()
    refused(r"test_augmented\.json")
    shutil.rmtree(official / "ChartQA Dataset")
    refused(r"test/test_human\.json.*chartqa\[source=synthetic\]")


def test_plain_numbers_alone_are_kept():
    for label in ("62", "0.57", "-3.5", " 14 ", "1e5", ".5"):
        value = plain_number(label)
        assert (
            ChartQA().parse(f" {label.strip()}").value
            == value
            == pytest.approx(float(label))
        )
    for label in ("62%", "1,234", "$5", "3/4", "1_000", "nan", "inf", "1e400", "٣", "Yes", "",
                  "12 and 15", "0x10", "2014-15"):  # fmt: skip
        assert plain_number(label) is None, label
