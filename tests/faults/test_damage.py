"""A file of a run that is cut short, or has other bits, counts as absent: nothing shows it."""

import errno
import shutil
from contextlib import suppress
from unittest import mock

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from smmd_bench.decoding.selection import require_whole
from smmd_bench.errors import UserError
from smmd_bench.results.frames import read_run
from smmd_bench.run.run_directory import record_failure
from smmd_bench.storage.addresses import digest_of_weights
from smmd_bench.storage.files import (
    DamagedError,
    parquet_address,
    read_json,
    read_own_json,
    read_parquet,
    write_json,
    write_parquet,
)
from tests.runs import quick_run

JSON = ("metrics.json", "selection.json", "train.json")
PARQUET = ("completions.parquet", "probes.parquet", "scores.parquet", "train_log.parquet")


@pytest.fixture(scope="module")
def received(tmp_path_factory):
    return quick_run(tmp_path_factory.mktemp("received") / "run").path


@pytest.fixture
def cell(received, tmp_path):
    """The folder of a trained cell."""
    shutil.copytree(received, tmp_path / "run")
    frames = read_run(tmp_path / "run").cells
    return tmp_path / "run" / "cells" / frames.loc[frames["loss"] == "ce", "address"].iloc[0]


def cut(file):
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def flip(file, place=0.5):
    """Another bit in the middle; in JSON a digit, so that it is still JSON."""
    content = bytearray(file.read_bytes())
    at = int(place * len(content))
    if file.suffix == ".json":
        at = next(i for i in range(at, len(content)) if chr(content[i]).isdigit())
    content[at] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("damage", [cut, flip])
def test_damaged_json_counts_as_absent_and_is_named(cell, name, damage, caplog):
    damage(cell / name)
    run = read_run(cell.parents[1])
    assert run.cells.set_index("address")["status"][cell.name] == "pending"
    assert f"{cell / name} is " in caplog.text
    assert "it counts as absent" in caplog.text
    assert (cell / f".{name}.damaged").exists()
    caplog.clear()
    assert len(read_run(cell.parents[1]).metrics)
    assert caplog.text == ""


@pytest.mark.parametrize("name", PARQUET)
def test_a_parquet_file_that_is_cut_counts_as_absent(cell, name, caplog):
    cut(cell / name)
    assert parquet_address(cell / name) is None
    assert f"{cell / name} is damaged (" in caplog.text


@pytest.mark.parametrize("name", PARQUET)
def test_a_bit_of_a_page_is_found_where_it_is_read(cell, name):
    flip(cell / name, 0.3)
    with pytest.raises(DamagedError, match=r"is damaged \(.*\): run the same command again"):
        read_parquet(cell / name)
    assert parquet_address(cell / name) is None


def test_no_bit_of_a_footer_stops_a_command(tmp_path):
    """Where the footer can still be read the stamp may be another one; nothing else is raised."""
    file, aside = tmp_path / "a.parquet", tmp_path / ".a.parquet.damaged"
    write_parquet(file, pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), "stamp")
    whole = file.read_bytes()
    damaged = 0
    for at in range(len(whole) // 2, len(whole), 3):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        with suppress(DamagedError):
            assert parquet_address(file) is None or len(read_parquet(file))
        damaged += aside.exists()
        aside.unlink(missing_ok=True)
    assert damaged > 20


def test_a_file_that_does_not_fit_the_memory_is_not_damaged(tmp_path, monkeypatch):
    file = tmp_path / "a.parquet"
    write_parquet(file, pd.DataFrame({"a": [1]}))
    for error in (pa.ArrowMemoryError("malloc"), OSError(errno.EIO, "input/output error")):
        monkeypatch.setattr(pq, "ParquetFile", mock.Mock(side_effect=error))
        with pytest.raises(type(error)):
            read_parquet(file)
        assert file.exists()


def test_what_cannot_be_made_again_is_an_error_that_names_the_file(cell):
    manifest = cell.parents[1] / "manifest.json"
    flip(manifest)
    with pytest.raises(UserError, match=r"manifest\.json is not as it was written: delete it"):
        read_run(cell.parents[1])
    manifest.write_text("[]")
    with pytest.raises(UserError, match="is not a JSON object"):
        read_json(manifest)


def test_a_file_without_a_checksum_is_taken_as_it_is(tmp_path, caplog):
    file = tmp_path / "a.json"
    file.write_text('{"a": 1}')
    assert read_own_json(file) == {"a": 1}
    write_json(file, {"a": 1, 2: (3.5, None)})
    assert read_json(file) == {"a": 1, "2": [3.5, None]}
    assert caplog.text == ""


def test_damaged_weights_are_not_decoded_and_count_as_absent(tmp_path):
    weights = tmp_path / "cells" / "a" / "checkpoint"
    weights.mkdir(parents=True)
    (weights / "model.safetensors").write_bytes(b"weights")
    digest = digest_of_weights(weights)
    write_json(weights / "canary.json", {"epoch": 1, "weights": digest})
    require_whole(weights, digest)
    flip(weights / "model.safetensors")
    with pytest.raises(DamagedError, match="checkpoint is damaged: run the same") as raised:
        require_whole(weights, digest)
    assert not (weights / "canary.json").exists()
    (weights.parent / "cell.json").write_text('{"addresses": {"measure": "m"}}')
    record_failure(weights.parent, "decode", raised.value)
    assert not read_json(weights.parent / "FAILED.json")["user_error"]  # the same command helps
