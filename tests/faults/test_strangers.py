"""What comes from a stranger runs nothing, and reaches nothing outside of its folder."""

import json
import shutil
import struct
import zlib

import pytest
from PIL import Image

from smmd_bench.encoding.images import image_size, read_image
from smmd_bench.errors import UserError
from smmd_bench.experiment.file import experiment_file
from smmd_bench.results.frames import read_run
from smmd_bench.run.pipeline import work_on
from smmd_bench.run.staging import fetch_run
from smmd_bench.storage.files import read_json, write_json
from smmd_bench.storage.manifest import kept_plugin
from smmd_bench.storage.run_storage import RunStorage
from tests.in_process import call
from tests.runs import quick_run

TABLE = "arithmetic_table"
PLUGIN = """
from pathlib import Path
Path({mark!r}).touch()
class Mine:
    name, title, paper = "mine", "Mine", ""
    def skip(self, run): return "nothing"
    def build(self, run): raise NotImplementedError
"""


@pytest.fixture(scope="module")
def received(tmp_path_factory):
    """A run as somebody sends it."""
    return quick_run(tmp_path_factory.mktemp("received") / "run").path


@pytest.fixture
def run(received, tmp_path):
    """The run; it names a plugin file that leaves a mark where it runs."""
    run = tmp_path / "run"
    shutil.copytree(received, run)
    (run / "mine.py").write_text(PLUGIN.format(mark=str(tmp_path / "ran")))
    change(run, experiments=[{"plugins": [str(run / "mine.py")]}], plugins={"report mine": ["x"]})
    return run


def change(run, **values):
    write_json(run / "manifest.json", {**read_json(run / "manifest.json"), **values})


@pytest.mark.parametrize(
    "words",
    [("report", "run", "--only", "arithmetic_table"), ("compare", "run", "run"), ("show", "run")],
    ids=lambda words: words[0],
)
def test_a_plugin_that_only_a_run_names_does_not_run(run, tmp_path, words):
    cache, mark, file = str(tmp_path / "cache"), tmp_path / "ran", run / "mine.py"
    said = call(words, tmp_path, SMMD_BENCH_CACHE=cache)
    assert (said.status, mark.exists()) == (0, False)
    assert f"runs only if you name it: read it, and give --plugin {file}." in said.stderr
    asked = [*words, "--plugin", str(file)]
    call(asked, tmp_path, SMMD_BENCH_CACHE=cache)
    assert mark.exists()
    mark.unlink()
    assert "runs only if" not in call(words, tmp_path, SMMD_BENCH_CACHE=cache).stderr
    assert mark.exists()  # its content has been named
    mark.unlink()
    file.write_text(f"{file.read_text()}\n# other content")
    call(words, tmp_path, SMMD_BENCH_CACHE=cache)
    assert not mark.exists()


def test_neither_a_copy_in_the_folder_nor_a_path_in_the_manifest_runs(run, tmp_path):
    mark, copy = tmp_path / "ran", kept_plugin(run, "gone.py")
    copy.parent.mkdir(parents=True)
    (run / "mine.py").rename(copy)
    change(run, experiments=[{"plugins": ["gone.py"]}])
    words = ("report", "run", "--only", "arithmetic_table")
    for paths in ({}, {"gone.py": str(copy)}):
        change(run, plugin_paths=paths)
        said = call(words, tmp_path, SMMD_BENCH_CACHE=str(tmp_path / "cache"))
        assert f"/{copy.relative_to(run)} runs only if you name it" in said.stderr
        assert not mark.exists()


@pytest.mark.parametrize("name", ["../other", "/etc", "a/../../b", ""])
def test_a_manifest_names_no_folder_elsewhere(run, name):
    change(run, cells=[name])
    with pytest.raises(UserError, match="outside of its folder"):
        read_run(run)
    with pytest.raises(UserError, match="outside of its folder"):
        work_on(run, (), lambda: None)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("manifest", {"cells": 3}),
        ("manifest", {"experiment": []}),
        ("cell", {"model": None}),
        ("cell", {"seed": 10**30}),
        ("cell", {"addresses": {"train": "a"}}),
        ("cell", {"plugins": 3}),
    ],
)
def test_a_run_folder_that_nothing_here_wrote_is_damaged(run, name, values):
    (file, *_) = sorted(run.rglob(f"{name}.json"))
    write_json(file, {**read_json(file), **values})
    with pytest.raises(UserError, match=rf"{name}\.json is not what this package"):
        _ = read_run(run).cells


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("metrics", {"metrics": []}),
        ("metrics", {"metrics": {"exact_match": {"value": "high"}}}),
        ("train", {"epochs": [{}]}),
        ("selection", {"best_epoch": {}}),
        ("selection", {"best_epoch": 99}),
        ("selection", {"address": ["a"]}),
    ],
)
def test_a_file_of_a_cell_that_nothing_here_wrote_counts_as_absent(run, name, values):
    for file in run.rglob(f"{name}.json"):
        write_json(file, {**read_json(file), **values})
    read = read_run(run)
    assert {*read.cells["status"]} <= {"pending", "done"}
    assert (read.cells.loc[read.cells["loss"] != "base", "status"] == "pending").all()
    assert isinstance(read.manifest, dict)
    for frame in (read.metrics, read.comparisons, read.selection):
        assert [*frame.columns]


def test_a_cell_is_the_one_of_its_folder_whatever_it_calls_itself(run):
    files = sorted(run.glob("cells/*/cell.json"))
    for file in files:
        write_json(file, {**read_json(file), "address": "another"})
    assert {*read_run(run).cells["address"]} == {file.parent.name for file in files}
    assert {*read_run(run).comparisons["against"]} <= {file.parent.name for file in files}


def test_half_a_surrogate_pair_is_a_question_mark_and_a_whole_one_a_letter(run, tmp_path):
    change(run, name="a\ud800", command="\udcff", experiment={"title": "\U0001f600 \ude00"})
    for file in run.glob("cells/*/cell.json"):
        write_json(file, {**read_json(file), "model": "m\ud800", "model_label": "m\ud800"})
    assert read_json(run / "manifest.json")["experiment"] == {"title": "\U0001f600 ?"}
    for words in (("show", "run"), ("compare", "run", "run"), ("report", "run", "--only", TABLE)):
        assert call(words, tmp_path).status == 0
    assert "m?" in (run / "reports" / "tables" / f"{TABLE}.csv").read_text()


def test_a_manifest_that_is_nested_too_deeply_is_damaged(run):
    (run / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(UserError, match="not valid JSON"):
        read_run(run)


def test_a_cell_has_no_weights_elsewhere(run):
    (address, *_) = read_json(run / "manifest.json")["cells"]
    file = run / "cells" / address / "cell.json"
    write_json(file, {**read_json(file), "source": "../../../other"})
    with pytest.raises(UserError, match="outside of its folder"):
        _ = read_run(run).cells


def test_a_storage_writes_nothing_elsewhere(tmp_path):
    stored, run = tmp_path / "stored", tmp_path / "run"
    (stored / "cells" / "a").mkdir(parents=True)
    write_json(stored / "manifest.json", {"cells": ["a"]})
    (stored / "cells" / "a" / "files.json").write_text(json.dumps({"../../../escaped": "0"}))
    (stored / "escaped").write_text("")
    with pytest.raises(UserError, match="outside of its folder"):
        fetch_run(RunStorage(f"file://{stored}"), run, weights=True)
    assert not (tmp_path / "escaped").exists()


def test_a_huge_picture_is_refused_by_its_header(tmp_path):
    file = tmp_path / "huge.png"
    Image.new("RGB", (2, 2)).save(file)
    content = bytearray(file.read_bytes())
    content[16:24] = struct.pack(">II", 60_000, 60_000)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    file.write_bytes(content)
    for read in (read_image, image_size):
        with pytest.raises(UserError, match=r"huge\.png cannot be read \(Image size"):
            read(file)


@pytest.mark.parametrize("text", ["a: !!python/object/apply:os.getcwd []", "tasks: [x]\nrun: [rm]"])
def test_yaml_makes_no_objects_and_knows_its_keys(text):
    with pytest.raises(UserError):
        experiment_file(text, "theirs.yaml")
