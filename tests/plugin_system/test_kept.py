"""A kept listing counts only as long as what it was read from stays as it is."""

import json
from pathlib import Path

import pytest

from smmd_bench.plugin_system import registry
from smmd_bench.plugin_system.listing import kept
from smmd_bench.plugin_system.listing.plugin import Listed


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The groups whose plugins were imported, each time that they were."""
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "cache"))
    asked: list[str] = []

    def entries(group: registry.Group) -> list[registry.Entry]:
        asked.append(group)
        return registry.entries(group)

    monkeypatch.setattr(kept, "entries", entries)
    monkeypatch.setattr(kept, "plugin_files", list)
    return asked


def test_it_is_read_once_and_is_the_same_from_the_file(asked: list[str]) -> None:
    first = kept.listing("tasks")
    assert kept.listing("tasks") == first
    assert asked == ["tasks"]
    assert [item.name for item in first] == registry.names("tasks")
    assert kept.known_summaries("tasks") == {item.name: item.summary for item in first}


def test_it_is_read_again_when_a_source_file_changes(asked: list[str], tmp_path: Path) -> None:
    kept.listing("tasks")
    (file,) = (tmp_path / "cache" / "listing").iterdir()
    content = json.loads(file.read_text())
    assert any(path.endswith("tasks/gsm8k.py") for path in content["files"])
    assert any(path.endswith("smmd_bench/plugin_system/parameters.py") for path in content["files"])
    path = next(iter(content["files"]))
    content["files"][path][1] += 1
    file.write_text(json.dumps(content))
    kept.listing("tasks")
    assert asked == ["tasks"] * 2


def test_it_is_read_again_with_other_distributions(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.listing("tasks")
    site = tmp_path / "site"
    (site / "new-1.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(site)
    kept.listing("tasks")
    assert asked == ["tasks"] * 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"surroundings": 3}', "\x00"])
def test_a_file_that_is_not_ours_is_made_again(asked: list[str], tmp_path: Path, text: str) -> None:
    first = kept.listing("executors")
    (file,) = (tmp_path / "cache" / "listing").iterdir()
    file.write_text(text)
    assert kept.known_summaries("executors") == dict.fromkeys(registry.names("executors"), "")
    assert kept.listing("executors") == first


def test_without_a_cache_folder_it_is_read_each_time(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "file"))
    assert all(isinstance(item, Listed) for item in kept.listing("executors"))
    kept.listing("executors")
    assert asked == ["executors"] * 2
