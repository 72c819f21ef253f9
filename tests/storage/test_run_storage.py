"""A run's folder in a storage: what is put there comes back, whatever was killed in between."""

import json
import os
import platform
import random
import shutil
from unittest import mock

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from smmd_bench.errors import UserError
from smmd_bench.storage import run_storage
from smmd_bench.storage.run_storage import RunStorage

CELL = "cells/abc"
FILES = {
    "cell.json": "plan", "train.json": "receipt", "completions.parquet": "PAR1",
    "epochs/1/model.safetensors": "one", "epochs/1/canary.json": "{1}",
    "epochs/2/model.safetensors": "two", "epochs/2/canary.json": "{2}",
    "training/checkpoint-8/optimizer.pt": "moments",
}  # fmt: skip


def write(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def read(folder):
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {name: path.read_text() for name, path in found.items()}


@pytest.fixture(params=["file", "memory"])
def storage(request, tmp_path):
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    place = tmp_path / "bucket" / "run" if request.param == "file" else "/bucket/run"
    return RunStorage(f"{request.param}://{place}/")


def test_what_is_put_comes_back_and_hidden_files_stay(storage, tmp_path):
    write(tmp_path / "one" / CELL, {**FILES, ".train.json.7.part": "half", "epochs/.3.part/x": "3"})
    storage.put(tmp_path / "one", CELL)
    storage.fetch(tmp_path / "two", CELL)
    assert read(tmp_path / "two" / CELL) == FILES
    assert set(storage.list(CELL)) == set(FILES)


def test_a_folder_follows_the_other_through_any_changes(storage, tmp_path):
    rng = random.Random(0)
    for _ in range(20):
        kept = {n: t + rng.choice("ab") for n, t in FILES.items() if rng.random() < 0.7}
        write(tmp_path / "one" / CELL, kept or FILES)
        storage.put(tmp_path / "one", CELL)
        storage.fetch(tmp_path / "two", CELL)
        assert read(tmp_path / "two" / CELL) == (kept or FILES)
        assert not [p for p in (tmp_path / "two").rglob("*") if p.is_dir() and not any(p.iterdir())]


def test_without_weights_only_what_says_what_there_is_comes_and_a_put_loses_none(storage, tmp_path):
    write(tmp_path / "one" / CELL, FILES)
    storage.put(tmp_path / "one", CELL)
    storage.fetch(tmp_path / "two", CELL, weights=False)
    small = {n: t for n, t in FILES.items() if "/" not in n or n.endswith("canary.json")}
    assert read(tmp_path / "two" / CELL) == small
    (tmp_path / "two" / CELL / "FAILED.json").write_text("why")
    (tmp_path / "two" / CELL / "train.json").unlink()
    storage.put(tmp_path / "two", CELL)
    storage.fetch(tmp_path / "one", CELL)
    expected = {n: t for n, t in FILES.items() if n != "train.json"}
    assert read(tmp_path / "one" / CELL) == {**expected, "FAILED.json": "why"}


def test_the_plan_of_the_run_stays_where_it_is_asked_to(storage, tmp_path):
    write(tmp_path / "one" / CELL, FILES)
    storage.put(tmp_path / "one", CELL)
    write(tmp_path / "two" / CELL, {"cell.json": "a newer plan"})
    storage.fetch(tmp_path / "two", CELL, plan=False)
    assert read(tmp_path / "two" / CELL) == {**FILES, "cell.json": "a newer plan"}


def test_what_a_killed_put_left_is_in_no_list_and_a_file_of_other_content_is_absent(
    storage, tmp_path, monkeypatch
):
    write(tmp_path / "one" / CELL, FILES)
    storage.put(tmp_path / "one", CELL)
    newer = {name: text + " newer" for name, text in FILES.items()}
    write(tmp_path / "one" / CELL, newer)
    put, done = RunStorage.put_file, []

    def dies(self, file, name):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(name)
        put(self, file, name)

    with monkeypatch.context() as patch:
        patch.setattr(RunStorage, "put_file", dies)
        with pytest.raises(KeyboardInterrupt):
            storage.put(tmp_path / "one", CELL)
    storage.fetch(tmp_path / "two", CELL)
    gone = {name.removeprefix(f"{CELL}/") for name in done}
    assert read(tmp_path / "two" / CELL) == {n: t for n, t in FILES.items() if n not in gone}
    storage.put(tmp_path / "one", CELL)
    storage.fetch(tmp_path / "two", CELL)
    assert read(tmp_path / "two" / CELL) == newer


def test_what_says_that_others_are_whole_comes_last_and_goes_first(storage, tmp_path, monkeypatch):
    write(tmp_path / "one" / CELL, FILES)
    came = []
    put = RunStorage.put_file
    monkeypatch.setattr(RunStorage, "put_file", lambda s, f, n: (came.append(n), put(s, f, n)))
    storage.put(tmp_path / "one", CELL)
    came = [name.removeprefix(f"{CELL}/") for name in came]
    assert came.index("epochs/1/canary.json") > came.index("epochs/1/model.safetensors")
    assert set(came[-3:]) == {"cell.json", "train.json", "completions.parquet"}


def test_a_file_that_changes_while_it_is_put_is_left_out(storage, tmp_path, monkeypatch):
    write(tmp_path / "one" / CELL, FILES)
    growing = tmp_path / "one" / CELL / "training" / "checkpoint-8" / "optimizer.pt"
    put = RunStorage.put_file

    def grow(self, file, name):
        put(self, file, name)
        if file == growing:
            file.write_text(file.read_text() + " and more")

    with monkeypatch.context() as patch:
        patch.setattr(RunStorage, "put_file", grow)
        storage.put(tmp_path / "one", CELL)
    assert set(storage.list(CELL)) == FILES.keys() - {"training/checkpoint-8/optimizer.pt"}
    storage.put(tmp_path / "one", CELL)
    assert set(storage.list(CELL)) == FILES.keys()


def test_what_is_the_same_is_not_put_again(storage, tmp_path, monkeypatch):
    write(tmp_path / "one" / CELL, FILES)
    storage.put(tmp_path / "one", CELL)
    monkeypatch.setattr(RunStorage, "put_file", lambda *_: pytest.fail("it was there"))
    storage.put(tmp_path / "one", CELL)


def test_nothing_in_the_storage_changes_nothing_here(storage, tmp_path):
    write(tmp_path / "one" / CELL, FILES)
    storage.fetch(tmp_path / "one", CELL)
    storage.fetch_file(tmp_path / "one" / "manifest.json", "manifest.json")
    assert read(tmp_path / "one" / CELL) == FILES
    assert storage.list(CELL) == {}


@pytest.mark.parametrize(
    ("url", "reason"),
    [("s3x://bucket/run", "s3x"), ("file:///proc/run", "Nothing can be written to the storage")],
)
def test_a_storage_that_cannot_be_written_is_the_users_error(url, reason):
    with pytest.raises(UserError, match=rf"storage {url} \(.*{reason}|^{reason}") as error:
        RunStorage(url)
    assert str(error.value).endswith(
        "check the URL and the credentials that its fsspec library reads."
    )


def test_a_list_is_json_that_people_can_read(storage, tmp_path):
    write(tmp_path / "one" / CELL, {"cell.json": "plan"})
    storage.put(tmp_path / "one", CELL)
    listed = json.loads(storage.fs.cat_file(f"{storage.root}/{CELL}/{run_storage.LIST}"))
    assert list(listed) == ["cell.json"]


def test_a_file_beside_the_folders_comes_back(storage, tmp_path):
    (tmp_path / "manifest.json").write_text("cells")
    storage.put_file(tmp_path / "manifest.json", "manifest.json")
    storage.fetch_file(tmp_path / "two" / "manifest.json", "manifest.json")
    assert read(tmp_path / "two") == {"manifest.json": "cells"}


def test_what_is_gone_from_the_run_goes_from_the_storage(storage, tmp_path):
    write(tmp_path / "one" / CELL, FILES)
    storage.put(tmp_path / "one", CELL)
    write(tmp_path / "one" / CELL, {"cell.json": "plan"})
    storage.put(tmp_path / "one", CELL)
    there = [name for name in storage.fs.find(storage.root) if storage.fs.isfile(name)]
    assert {name.rpartition("/")[2] for name in there} == {"cell.json", run_storage.LIST}


def test_a_fetched_file_that_says_that_others_are_whole_comes_after_them(
    storage, tmp_path, monkeypatch
):
    write(tmp_path / "one" / CELL, FILES)
    storage.put(tmp_path / "one", CELL)
    came = []
    get = storage.fs.get_file
    monkeypatch.setattr(storage.fs, "get_file", lambda a, b: (came.append(a), get(a, b)))
    storage.fetch(tmp_path / "two", CELL)
    came = [name.rpartition(f"{CELL}/")[2] for name in came]
    assert came.index("epochs/1/canary.json") > came.index("epochs/1/model.safetensors")
    assert {*came[-3:]} == {"cell.json", "train.json", "completions.parquet"}


def test_a_list_that_names_a_file_elsewhere_is_refused_with_its_url(storage, tmp_path):
    assert storage.url in (f"file://{tmp_path}/bucket/run", "memory:///bucket/run")
    storage.fs.pipe_file(f"{storage.root}/{CELL}/files.json", b'{"../../key": "0"}')
    with pytest.raises(UserError) as error:
        storage.list(CELL)
    assert str(error.value).startswith(f"{storage.url}/{CELL}/files.json names '../../key', which")


def test_every_process_tries_a_hidden_file_of_its_own_that_goes_again(monkeypatch):
    tried = []
    pipe = MemoryFileSystem.pipe_file
    monkeypatch.setattr(
        MemoryFileSystem, "pipe_file", lambda s, n, v: (tried.append(n), pipe(s, n, v))
    )
    storage = RunStorage("memory://bucket/probed")
    (name,) = tried
    assert name.startswith(f"{storage.root}/.{platform.node()}-{os.getpid()}.")
    assert not storage.fs.exists(name)


def test_the_first_line_of_what_a_storage_says_is_the_reason(monkeypatch):
    for error, reason in ((OSError("No.\nMore"), "No"), (KeyError(), "KeyError")):
        monkeypatch.setattr(run_storage.fsspec, "url_to_fs", mock.Mock(side_effect=error))
        with pytest.raises(UserError, match=rf"to the storage s3://a \({reason}\): check the URL"):
            RunStorage("s3://a")
