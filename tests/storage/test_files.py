"""Files are whole or absent, say what made them, and tell of damage."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from smmd_bench.errors import UserError
from smmd_bench.storage import files
from smmd_bench.storage.files import (
    DamagedError,
    atomic,
    parquet_address,
    parquet_made_with,
    read_json,
    read_own_json,
    read_parquet,
    remove_leftovers,
    set_aside,
    write_json,
    write_json_if_new,
    write_parquet,
    write_text,
)

FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [0.5, None]})


def test_a_file_is_on_the_disk_before_it_has_its_name_and_the_folder_after(tmp_path, monkeypatch):
    file, synced = tmp_path / "new" / "folder" / "a", []

    def sync(number):
        synced.append((Path(f"/proc/self/fd/{number}").readlink(), file.exists()))

    monkeypatch.setattr(os, "fsync", sync)
    opened = Path("/proc/self/fd")
    before = len([*opened.iterdir()])
    write_text(file, "a")
    assert synced == [(file.parent / f".a.{os.getpid()}.part", False), (file.parent, True)]
    assert len([*opened.iterdir()]) == before


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ValueError("no"), ValueError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (OSError(errno.EIO, "input/output error"), OSError),
        (OSError(errno.ENOSPC, "full"), UserError),
    ],
)
def test_an_error_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path, error, raised):
    file = tmp_path / "a"
    write_text(file, "old")

    def write() -> None:
        with atomic(file) as part:
            part.write_text("new")
            raise error

    with pytest.raises(raised) as found:
        write()
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
    if raised is UserError:
        assert f"The disk is full while writing {file}" in str(found.value)


def test_only_what_nobody_has_touched_for_an_hour_is_a_leftover(tmp_path, monkeypatch):
    names = (".a.1.part", "deep/er/.b.2.part", "c.part")
    for name in (*names, "kept", "deep/kept.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1_000, 1_000))
    for now, gone in ((4_600.0, False), (4_601.0, True)):
        monkeypatch.setattr(files.time, "time", lambda now=now: now)
        remove_leftovers(tmp_path)
        assert {name for name in names if (tmp_path / name).exists()} == {*names} - {
            *(names if gone else ())
        }
    assert (tmp_path / "kept").exists()
    assert (tmp_path / "deep" / "kept.json").exists()


def test_a_leftover_that_another_process_removes_meanwhile_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(files.os, "walk", lambda _: [(str(tmp_path), [], [".a.1.part"])])
    remove_leftovers(tmp_path)


@pytest.mark.parametrize("value", [{}, {"a": 1}, {"a": {"b": ["é", None]}, "c": 1.5}])
def test_json_that_was_written_is_read_and_its_last_line_is_a_checksum(tmp_path, value):
    file = tmp_path / "a.json"
    write_json(file, value)
    assert read_json(file) == value
    plain = json.loads(file.read_text())
    assert {name: item for name, item in plain.items() if name != "checksum"} == value
    assert ("checksum" in plain) == bool(value)
    write_json(file, {**value, "checksum": "of before"})
    assert json.loads(file.read_text()) == plain


def test_any_other_text_than_was_written_is_damage(tmp_path):
    file = tmp_path / "a.json"
    write_json(file, {"a": 1, "b": "x"})
    text = file.read_text()
    file.write_text(text.replace("1", "2", 1))
    with pytest.raises(DamagedError) as error:
        read_json(file)
    assert str(error.value) == f"{file} is not as it was written: delete it to have it made again."
    for other, how in (("[]", "not a JSON object"), ("{", r"not valid JSON \(Expecting .*\)")):
        file.write_text(other)
        with pytest.raises(DamagedError, match=rf"a\.json is {how}: delete it"):
            read_json(file)
    assert read_json(tmp_path / "absent.json") is None


def test_numbers_that_json_does_not_have_are_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"a": float("nan")})
    assert not list(tmp_path.iterdir())


def test_half_a_surrogate_pair_becomes_a_question_mark(tmp_path):
    write_text(tmp_path / "a.txt", "a\ud83d é")
    assert (tmp_path / "a.txt").read_bytes() == "a? é".encode()
    (tmp_path / "a.json").write_text('{"a\\uDE00": "\\ud83d", "pair": "\\ud83d\\ude00"}')
    assert read_json(tmp_path / "a.json") == {"a?": "?", "pair": "😀"}


def test_json_that_says_the_same_is_not_written_again(tmp_path):
    file = tmp_path / "a.json"
    write_json_if_new(file, {"a": (1, 2)})
    os.utime(file, (0, 0))
    write_json_if_new(file, {"a": [1, 2]})
    assert file.stat().st_mtime == 0
    write_json_if_new(file, {"a": (1, 3)})
    assert read_json(file) == {"a": [1, 3]}


def test_a_damaged_file_of_our_own_is_set_aside_and_said(tmp_path, caplog):
    file = tmp_path / "a.json"
    file.write_text("{")
    assert read_own_json(file) is None
    assert [path.name for path in tmp_path.iterdir()] == [".a.json.damaged"]
    assert caplog.messages[0].startswith(f"{file} is not valid JSON (")
    assert caplog.messages[0].endswith("): it counts as absent.")
    set_aside(file, DamagedError(file, "gone"))  # by another process
    assert caplog.messages[1] == f"{file} is gone: it counts as absent."


def test_a_parquet_file_says_its_stamp_and_what_made_it(tmp_path):
    file = tmp_path / "a.parquet"
    assert (parquet_address(file), parquet_made_with(file)) == (None, {})
    write_parquet(file, FRAME)
    assert (parquet_address(file), parquet_made_with(file)) == ("", {})
    write_parquet(file, FRAME, "stamp", {"torch": "2.13.0"})
    assert (parquet_address(file), parquet_made_with(file)) == ("stamp", {"torch": "2.13.0"})
    assert read_parquet(file).to_pandas().equals(FRAME)
    FRAME.to_parquet(file)  # of nobody's stamp
    assert (parquet_address(file), parquet_made_with(file)) == ("", {})


@pytest.mark.parametrize(
    ("asked", "columns"),
    [
        ({}, ["a", "b", "c"]),
        ({"columns": ["c", "absent", "a"]}, ["c", "a"]),
        ({"without": ["b", "absent"]}, ["a", "c"]),
        ({"columns": ["a"], "without": ["a"]}, ["a"]),
        ({"columns": []}, []),
    ],
)
def test_those_of_the_columns_are_read_that_are_there(tmp_path, asked, columns):
    write_parquet(tmp_path / "a.parquet", FRAME.rename(index={0: 5}))
    assert read_parquet(tmp_path / "a.parquet", **asked).column_names == columns


def test_a_changed_number_is_found_where_nothing_else_in_the_file_can_tell(tmp_path):
    file = tmp_path / "a.parquet"
    numbers = np.random.default_rng(0).integers(2**62, size=1000)  # no page of them is compressed
    write_parquet(file, pd.DataFrame({"a": numbers}))
    content = bytearray(file.read_bytes())
    content[content.find(numbers[500].tobytes())] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedError, match=r"is damaged \(.*\): run the same command again"):
        read_parquet(file)
