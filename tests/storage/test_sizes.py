"""How large files and folders are."""

import pytest

from smmd_bench.storage import sizes
from smmd_bench.storage.sizes import size_of, spell_bytes


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"), (1023, "1023 B"), (-1023, "-1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"),
        (-1536, "-1.5 KiB"), (2**20, "1.0 MiB"), (3 * 2**29, "1.5 GiB"), (2**40, "1.0 TiB"),
        (2**50, "1024.0 TiB"),
    ],
)  # fmt: skip
def test_bytes_are_said_in_the_largest_unit_below_them(count, said):
    assert spell_bytes(count) == said


@pytest.fixture
def folder(tmp_path):
    """10 + 200 bytes in files, and links to a file, to a folder and to nothing."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "large").write_bytes(b"1" * 5_000)
    place = tmp_path / "near"
    (place / "below" / "empty").mkdir(parents=True)
    (place / "a").write_bytes(b"1" * 10)
    (place / "below" / "b").write_bytes(b"1" * 200)
    for name, target in (("f", "../far/large"), ("d", "../far"), ("n", "nowhere")):
        (place / name).symlink_to(target)
    return place


def test_a_folder_is_as_large_as_its_files_and_links_count_as_themselves(folder):
    links = sum(len(str(path.readlink())) for path in folder.iterdir() if path.is_symlink())
    assert size_of(folder) == (210 + links, True)
    assert size_of(folder / "a") == (10, True)
    assert size_of(folder / "d") == (len("../far"), True)
    assert size_of(folder / "n") == (len("nowhere"), True)
    assert size_of(folder / "absent") == (0, True)


def test_after_its_time_no_further_folder_is_looked_into(folder, monkeypatch):
    whole, _ = size_of(folder)
    for seconds, found in ((2.0, (whole, True)), (1.0, (whole, True)), (0.5, (whole - 200, False))):
        clock = iter([100.0, 101.0, 101.0, 101.0])
        monkeypatch.setattr(sizes.time, "monotonic", lambda clock=clock: next(clock))
        assert size_of(folder, seconds) == found


def test_a_file_that_goes_meanwhile_counts_as_nothing(folder, monkeypatch):
    whole, _ = size_of(folder)
    walk = [(str(folder), ["d"], ["a", "gone", "f", "n"]), (str(folder / "below"), [], ["b"])]
    monkeypatch.setattr(sizes.os, "walk", lambda _: walk)
    assert size_of(folder) == (whole, True)
