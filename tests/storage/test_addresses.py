"""Addresses follow from content alone; names and digests from what they name."""

import os

import pytest

from smmd_bench.storage import addresses
from smmd_bench.storage.addresses import (
    address,
    digest_of_files,
    digest_of_weights,
    folder_name,
)
from smmd_bench.storage.files import read_json


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_address_is_the_same_in_every_version_of_this_package():
    """Of another one, every result on every disk would be made again."""
    content = {
        "loss": {"name": "smmd", "sigma": 1.0},
        "epochs": (1, 2),
        "name": "é",
        "none": None,
    }
    assert address(content) == "989f8dd56536c7cd"
    assert address(dict(reversed(content.items()))) == address(content)
    assert address({**content, "epochs": [1, 2]}) == address(content)
    assert address({**content, "epochs": (2, 1)}) != address(content)
    assert address({"tasks": {"c", "a", "b"}}) == address({"tasks": ["a", "b", "c"]})


def test_a_folders_name_can_be_read_and_follows_from_the_content():
    words = ("smmd[sigma=1.5]", "gsm8k-é", "a/b")
    assert (
        folder_name(words, {"a": 1})
        == f"smmd-sigma-1.5_gsm8k-é_a-b_{address({'a': 1})[:6]}"
    )
    assert folder_name(words, {"a": 2}) != folder_name(words, {"a": 1})
    assert folder_name(["X" * 100, "b"], {}) == f"{'X' * 80}_{address({})[:6]}"


def test_a_digest_of_files_follows_from_names_and_contents_and_not_from_the_place(
    tmp_path,
):
    def digest(folder, **files):
        place = tmp_path / folder
        place.mkdir()
        for name, text in files.items():
            (place / name).write_text(text)
        paths = [place / name for name in files]
        return digest_of_files(paths, place)

    first = digest("one", a="1", b="2")
    assert first == digest("two", b="2", a="1")
    assert first != digest("three", a="2", b="1")
    assert first != digest("four", a="1")


def settle_times(monkeypatch):
    """Let the files of a test be old: their times cannot be set back."""
    monkeypatch.setattr(addresses, "_CLOCK_STEP", 0)


@pytest.mark.parametrize("always_read", [64 * 2**20, 0], ids=["small", "large"])
def test_other_content_of_the_same_size_and_date_is_another_file(
    tmp_path, monkeypatch, always_read
):
    monkeypatch.setattr(addresses, "_ALWAYS_READ", always_read)
    file = tmp_path / "a"
    digests = []
    for text in ("one", "two"):
        file.write_text(text)
        os.utime(file, ns=(0, 1_000))
        digests.append(digest_of_files([file], tmp_path))

    settle_times(monkeypatch)
    other = tmp_path / "other"
    for text in ("ten", "six"):
        other.write_text(text)
        os.utime(other, ns=(0, 1_000))
        other.rename(file)
        digests.append(digest_of_files([file], tmp_path))

    assert len({*digests}) == 4


def count_reads(monkeypatch):
    """The files whose content is read from now on."""
    read = []
    content_digest = addresses.content_digest
    monkeypatch.setattr(
        addresses,
        "content_digest",
        lambda file: read.append(file) or content_digest(file),
    )
    return read


def test_a_small_file_is_read_once_a_process_and_a_large_one_once(
    tmp_path, cache, monkeypatch
):
    settle_times(monkeypatch)
    read = count_reads(monkeypatch)
    file = tmp_path / "a"
    file.write_text("one")
    for _ in range(3):
        digest_of_files([file], tmp_path)
    assert len(read) == 1
    assert not (cache / "digests").exists()

    monkeypatch.setattr(addresses, "_ALWAYS_READ", 2)
    for _ in range(2):
        addresses._recall_digest.cache_clear()  # as in another process
        digest_of_files([file], tmp_path)

    assert len(read) == 2

    (kept,) = (cache / "digests").iterdir()
    digest = "c88d4df74262143a08e9d190e3bd67f1"  # b2sum -l 128
    assert read_json(kept) == {"path": str(file), "digest": digest}


def test_a_file_that_has_just_changed_is_read_each_time(tmp_path, monkeypatch):
    read = count_reads(monkeypatch)
    (tmp_path / "a").write_text("one")
    for _ in range(2):
        digest_of_files([tmp_path / "a"], tmp_path)
    assert len(read) == 2


def test_a_digest_of_weights_is_of_safetensors_alone(tmp_path):
    (tmp_path / "model.safetensors").write_text("weights")
    first = digest_of_weights(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert digest_of_weights(tmp_path) == first

    (tmp_path / "model.safetensors").write_text("Weights")
    assert digest_of_weights(tmp_path) != first

    (tmp_path / "model.safetensors").rename(tmp_path / "adapter_model.safetensors")
    (tmp_path / "adapter_model.safetensors").write_text("weights")
    assert digest_of_weights(tmp_path) != first
