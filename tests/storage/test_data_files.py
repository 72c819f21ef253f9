"""Where a task's rows come from."""

import json
import re
import time
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from smmd_bench.storage.data_files import DataSource, HubData
from tests.conftest import expect_user_error

ROWS = [{"question": "1+1?", "answer": "#### 2"}, {"question": "é", "answer": "#### 3"}]
SOURCE = DataSource(
    "toy",
    {"train": ("train.jsonl", "train.json", "train.parquet"), "test": ("test.jsonl",)},
    HubData(
        "nobody/toy", "0" * 40, "main", {"train": ("train", "more"), "test": ("test",)}
    ),
)


def write(file):
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), file)
    elif file.suffix == ".json":
        file.write_text(json.dumps(ROWS))
    else:
        file.write_text("\n".join(json.dumps(row) for row in ROWS))


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The folder of local copies."""
    monkeypatch.setenv("SMMD_BENCH_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def no_copy(tmp_path, monkeypatch):
    monkeypatch.delenv("SMMD_BENCH_DATA", raising=False)
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path))


@pytest.mark.parametrize("name", ["toy/train.jsonl", "train.json", "toy/train.parquet"])
def test_a_local_copy_is_read_in_any_of_its_forms(name, data):
    write(data / name)
    assert SOURCE.rows("train") == ROWS
    assert SOURCE.file("train") == data / name
    if not name.endswith("parquet"):
        (data / name).write_bytes(b"\xef\xbb\xbf" + (data / name).read_bytes())
        assert SOURCE.rows("train") == ROWS


@pytest.mark.parametrize("name", ["toy/test", "test"])
def test_a_split_that_datasets_saved_is_read(name, data):
    Dataset.from_list(ROWS).save_to_disk(data / name)
    assert SOURCE.rows("test") == ROWS
    digest = SOURCE.identity("test")["digest"]
    Dataset.from_list(ROWS[:1]).save_to_disk(data / name)
    assert SOURCE.identity("test")["digest"] != digest


def test_a_damaged_split_that_datasets_saved_is_refused(data):
    Dataset.from_list(ROWS).save_to_disk(data / "test")
    (data / "test/data-00000-of-00001.arrow").write_bytes(b"no rows")
    with expect_user_error("test is not a readable Arrow file"):
        SOURCE.rows("test")


def test_its_identity_is_its_content(tmp_path, monkeypatch):
    identities = []
    for place in ("one", "two", "three"):
        monkeypatch.setenv("SMMD_BENCH_DATA", str(tmp_path / place))
        write(tmp_path / place / "toy/train.jsonl")
        if place == "three":
            (tmp_path / place / "toy/train.jsonl").write_text("{}")
        identities.append(SOURCE.identity("train"))

    assert identities[0] == identities[1] != identities[2]
    assert identities[0] == {
        "source": "toy",
        "split": "train",
        "digest": identities[0]["digest"],
    }


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (
            '{"question": 1}\n{"answer"',
            "line 2: Expecting ':' delimiter: line 1 column 10 (char 9)",
        ),
        ("[1, 2]", "it is not a list of rows"),
        ('"a"', "it is not a list of rows"),
        ("\n", "it has no rows"),
        (
            '{"question": 1, "answer": 0}\n\n{"question": 1, "answer": null}',
            "row 2 has no answer",
        ),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(text, wrong, data):
    (data / "train.jsonl").write_text(text)
    file = data / "train.jsonl"
    message = f"{file} is not a readable jsonl file ({wrong}): copy it "
    with expect_user_error(f"^{re.escape(message)}"):
        replace(SOURCE, columns=("question", "answer")).rows("train")


@pytest.mark.usefixtures("no_copy")
def test_without_a_copy_and_a_hub_it_says_how_to_get_the_data(tmp_path):
    message = (
        r"The data nobody/toy cannot be fetched from the hub \(HF_HUB_OFFLINE is set.*\): run "
        r"`smmd-bench prepare toy` where there is a network, or give a folder that holds "
        r"toy/train\.jsonl with --data-dir\."
    )
    with expect_user_error(f"^{message}$"):
        SOURCE.rows("train")
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.usefixtures("no_copy")
def test_a_hub_that_cannot_be_reached_is_asked_once(monkeypatch):
    """The libraries would ask again for 24 s."""
    for library in ("huggingface_hub.constants", "datasets.config"):
        monkeypatch.setattr(f"{library}.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:1")
    then = time.monotonic()
    with expect_user_error(r"from the hub \(http://127.0.0.1:1: .*refused.*\): run"):
        SOURCE.rows("train")
    assert time.monotonic() - then < 15


@pytest.mark.usefixtures("no_copy")
def test_what_was_fetched_is_not_fetched_again(monkeypatch):
    """The hub is out of reach here: its answer is the only thing that is made up."""
    requests = []

    def load_dataset(repository, configuration, *, split, revision):
        requests.append((repository, configuration, split, revision))
        return ROWS

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    for _ in range(2):
        assert SOURCE.rows("train") == ROWS + ROWS
    assert SOURCE.rows("test") == ROWS

    revision = SOURCE.hub.revision
    splits = ("train", "more", "test")
    assert requests == [("nobody/toy", "main", split, revision) for split in splits]
