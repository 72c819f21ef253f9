"""Files and folders are whole or absent, and tell of damage."""

import errno
import shutil
import time

import numpy as np
import pandas as pd
import pytest

from smmd_bench.errors import UserError
from smmd_bench.storage import files

FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [0.5, None]})


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ValueError("no"), ValueError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (OSError(errno.EIO, "input/output error"), OSError),
        (OSError(errno.ENOSPC, "full"), UserError),
    ],
)
def test_an_error_leaves_the_file_as_it_was_and_nothing_beside_it(
    tmp_path, error, raised
):
    file = tmp_path / "a"
    files.write_text(file, "old")

    def write():
        with files.atomic(file) as temporary:
            temporary.write_text("new")
            raise error

    with pytest.raises(raised):
        write()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert file.read_text() == "old"


def test_a_folder_appears_whole_and_goes_on_where_it_was_killed(tmp_path):
    folder = tmp_path / "decode/key"

    def make():
        with files.write_folder(folder) as part:
            (part / "first").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make()
    assert not folder.exists()

    with files.write_folder(folder) as part:
        assert (part / "first").exists()
        (part / "second").touch()

    assert sorted(file.name for file in folder.iterdir()) == ["first", "second"]

    with files.write_folder(folder) as part:  # another process was first
        (part / "third").touch()
    with files.write_folder(
        folder
    ) as part:  # and has renamed what this one was writing in
        shutil.rmtree(part)
        (part / "third").touch()

    assert sorted(file.name for file in folder.iterdir()) == ["first", "second"]
    assert [path.name for path in folder.parent.iterdir()] == ["key"]

    files.remove_tree(folder)
    files.remove_tree(folder)
    assert not [*folder.parent.iterdir()]


@pytest.fixture(params=["", "{", "[1]", '{"a": 1} x', "[" * 100_000])
def damaged(request, tmp_path):
    """A damaged file in a folder of the stage `measure`."""
    file = tmp_path / "measure/key/metrics.json"
    files.write_text(file, request.param)
    return file


def test_damaged_json_counts_as_absent(damaged, caplog):
    with pytest.raises(files.DamagedError):
        files.read_json(damaged)
    assert files.read_own_json(damaged) is None
    assert "counts as absent" in caplog.text
    assert damaged.exists()  # reading moves nothing


def test_the_folder_of_damaged_json_is_set_aside(damaged, tmp_path, caplog):
    files.set_damaged_aside([tmp_path / "measure"])
    assert [path.name for path in damaged.parents[1].iterdir()] == ["key.damaged"]
    assert "is set aside and made again" in caplog.text


def test_half_a_surrogate_pair_and_nan_are_not_written(tmp_path):
    files.write_text(tmp_path / "a", "x\ud83d")
    assert (tmp_path / "a").read_text() == "x?"
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(tmp_path / "c", {"a": np.nan})
    assert not (tmp_path / "c").exists()


def test_parquet_is_read_by_column(tmp_path):
    file = tmp_path / "completions.parquet"
    files.write_parquet(file, FRAME)
    pd.testing.assert_frame_equal(files.read_parquet(file).to_pandas(), FRAME)
    assert files.read_parquet(file, ["b", "none"]).column_names == ["b"]
    assert files.read_parquet(file, without=["b"]).column_names == ["a", "c"]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("completions", "repeat the command of the run"),
        ("probes", "delete it: no result depends"),
        ("log", "delete it: no result depends"),
    ],
)
def test_parquet_is_verified_and_set_aside_where_something_is_made_from_it(
    tmp_path, name, remedy
):
    stages = [tmp_path / "decode"]
    file = tmp_path / "decode/key" / f"{name}.parquet"
    files.write_parquet(file.with_name("completions.parquet"), FRAME)
    files.write_parquet(file, FRAME)
    files.set_damaged_aside(stages)
    content = bytearray(file.read_bytes())
    content[20] ^= 255
    file.write_bytes(content)

    # It has not changed since, until somebody finds it damaged.
    time.sleep(0.05)
    since = time.time() - 0.02
    files.set_damaged_aside(stages, since)

    assert file.exists()
    with pytest.raises(files.DamagedError, match=remedy):
        files.read_parquet(file)

    files.set_damaged_aside(stages, since)
    assert file.exists() == (name != "completions")
