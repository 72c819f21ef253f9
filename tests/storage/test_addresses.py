"""Addresses follow from content alone; names and digests from what they name."""

import os

import pytest

from smmd_bench.storage.addresses import address, digest_of_files, digest_of_weights, folder_name
from smmd_bench.storage.files import read_json


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_address_is_the_same_in_every_version_of_this_package():
    """Of another one, every result on every disk would be made again."""
    content = {"loss": {"name": "smmd", "sigma": 1.0}, "epochs": (1, 2), "name": "é", "none": None}
    assert address(content) == "989f8dd56536c7cd"
    assert address(dict(reversed(content.items()))) == address(content)
    assert address({**content, "epochs": [1, 2]}) == address(content)
    assert address({**content, "epochs": (2, 1)}) != address(content)
    assert address({"tasks": {"c", "a", "b"}}) == address({"tasks": ["a", "b", "c"]})


def test_a_folders_name_can_be_read_and_follows_from_the_content():
    words = ("smmd[sigma=1.5]", "gsm8k-é", "a/b")
    assert folder_name(words, {"a": 1}) == f"smmd-sigma-1.5_gsm8k-é_a-b_{address({'a': 1})[:6]}"
    assert folder_name(words, {"a": 2}) != folder_name(words, {"a": 1})
    assert folder_name(["X" * 100, "b"], {}) == f"{'X' * 80}_{address({})[:6]}"


def test_a_digest_of_files_follows_from_names_and_contents_and_not_from_the_place(tmp_path):
    def digest(folder: str, files: dict[str, str]) -> str:
        for name, text in files.items():
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / name).write_text(text)
        paths = [tmp_path / folder / name for name in files]
        return digest_of_files(paths, tmp_path / folder)

    one = digest("one", {"a": "1", "b": "2"})
    assert one == digest("two", {"b": "2", "a": "1"})
    assert one not in (digest("three", {"a": "2", "b": "1"}), digest("four", {"a": "1"}))


def test_a_file_is_digested_again_only_when_its_size_or_time_has_changed(tmp_path, cache):
    file = tmp_path / "a"
    file.write_text("one")
    os.utime(file, ns=(0, 1_000))
    first = digest_of_files([file], tmp_path)
    (kept,) = (cache / "digests").iterdir()
    digest = "c88d4df74262143a08e9d190e3bd67f1"  # b2sum -l 128
    assert read_json(kept) == {"path": str(file), "digest": digest}
    file.write_text("two")
    os.utime(file, ns=(0, 1_000))  # as large, and as old: nobody looks
    assert digest_of_files([file], tmp_path) == first
    os.utime(file, ns=(0, 2_000))
    assert digest_of_files([file], tmp_path) != first


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
