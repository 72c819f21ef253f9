"""The source of a first-party plugin changes with a version, or with a declared reason."""

from typing import Any

import pytest

from scripts.record_plugin_sources import complaints, plugin_sources, read_record, updated

NOW = {
    "losses/old": {"versions": {"old.Old.version": 1}, "digest": "a"},
    "tasks/sums": {"versions": {"sums.Sums.version": 2, "sums.FORMAT": 1}, "digest": "b"},
}
RECORD: dict[str, Any] = {"plugins": NOW, "unchanged": []}


def edited(digest: str = "c", **versions: int) -> dict[str, Any]:
    """The two plugins after an edit of the task."""
    sums = {f"sums.{name.replace('_', '.')}": number for name, number in versions.items()}
    known = {**NOW["tasks/sums"]["versions"], **sums}
    return {**NOW, "tasks/sums": {"versions": known, "digest": digest}}


def test_no_plugin_here_has_changed_without_a_version_or_a_reason():
    record = read_record()
    assert complaints(record["plugins"], plugin_sources()) == []
    for declared in record["unchanged"]:
        assert declared["plugins"]
        assert declared["date"]
        assert declared["why"].strip()


def test_the_helpers_of_a_plugin_are_part_of_its_source():
    found = plugin_sources()
    assert set(found["tasks/clock_time"]["versions"]) >= {
        "clock_time.FORMAT", "clock_time.ClockTime.version", "_clock_pictures.DRAWING",
        "_clock_metrics.TimeGap.version",
    }  # fmt: skip
    digests = [source["digest"] for source in found.values()]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize("lower", [{}, {"Sums_version": 1}, {"Sums_version": 1, "FORMAT": 2}])
def test_a_change_without_a_higher_version_says_both_remedies(lower):
    (sentence,) = complaints(NOW, edited(**lower))
    assert "The source of tasks/sums has changed" in sentence
    assert lower or "(sums.Sums.version = 2, sums.FORMAT = 1)" in sentence
    assert '--unchanged tasks/sums --why "REASON"' in sentence
    with pytest.raises(SystemExit, match="tasks/sums has changed"):
        updated(RECORD, edited(**lower), [], "")


@pytest.mark.parametrize("versions", [{"Sums_version": 3}, {"FORMAT": 2}])
def test_a_raised_version_is_recorded(versions):
    (sentence,) = complaints(NOW, edited(**versions))
    assert sentence.startswith("tasks/sums is not recorded as it is now: run python")
    after = updated(RECORD, edited(**versions), [], "")
    assert after == {"plugins": edited(**versions), "unchanged": []}


@pytest.mark.parametrize("declared", ["tasks/sums", "all"])
def test_a_declared_reason_is_kept(declared):
    after = updated(RECORD, edited(), [declared], "a helper is renamed")
    assert complaints(after["plugins"], edited()) == []
    (entry,) = after["unchanged"]
    assert (entry["plugins"], entry["why"]) == (["tasks/sums"], "a helper is renamed")
    again = updated(after, edited("d"), [declared], "and once more")
    assert [entry["why"] for entry in again["unchanged"]] == [
        "a helper is renamed", "and once more",
    ]  # fmt: skip


def test_only_what_has_changed_can_be_declared():
    with pytest.raises(SystemExit, match="losses/old has not changed without a version"):
        updated(RECORD, edited(), ["losses/old"], "no reason")


def test_plugins_that_come_and_go_are_recorded():
    new = {"losses/new": {"versions": {}, "digest": "n"}, "tasks/sums": NOW["tasks/sums"]}
    said = complaints(NOW, new)
    assert [line.split()[0] for line in said] == ["losses/new", "losses/old"]
    assert updated(RECORD, new, [], "")["plugins"] == new
