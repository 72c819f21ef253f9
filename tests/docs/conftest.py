"""A folder with everything that documented commands name: a finished run, files, checkpoints."""

import gzip
import json
import os
import shutil

import pytest

from smmd_bench.plugin_system.registry import load_task
from tests.in_process import call
from tests.regression.questions import write_mmlu

from .calls import SMALL
from .commands import repository

_RUN = ("--task=arithmetic", "--losses=ce,ntl,smmd", "--seeds=0,1", "--out=runs/NAME")


@pytest.fixture(scope="package", autouse=True)
def cache(tmp_path_factory):
    """A cache folder of this test's own."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SMMD_BENCH_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="package")
def place(tmp_path_factory):
    """What stands for the names in the documentation: runs/NAME, ./my-checkpoint, ce.jsonl ..."""
    folder = tmp_path_factory.mktemp("place")
    for name in ("examples", "experiments", "tests"):
        (folder / name).symlink_to(repository(name))
    (folder / "data").symlink_to(repository("tests/data"))
    (folder / "my-checkpoint").mkdir()
    for file in repository("smmd_bench/models/builtin/tiny").iterdir():
        if file.name != "card.yaml":
            (folder / "my-checkpoint" / file.name).symlink_to(file)
    said = call(["train-eval", *_RUN, *SMALL["train-eval"]], folder)
    assert said.status == 0, said.output
    for name in ("BEFORE", "AFTER"):
        (folder / "runs" / name).symlink_to(folder / "runs/NAME")
    trained = next((folder / "runs/NAME/cells").glob("*/checkpoint"))
    (folder / "other").symlink_to(trained)
    for kind, name in (("task", "my_task"), ("report", "my_figure")):
        call(["new", kind, name], folder)
    write_mmlu(folder / "DIR/mmlu/cais/mmlu")
    (folder / "DIR/samsum").symlink_to(repository("tests/data/samsum"))
    _write_predictions(folder)
    return folder


def _write_predictions(folder):
    """Eight answers in each of the formats that the pages name."""
    for name in ("ce", "smmd"):
        _lines(folder / f"{name}.jsonl", [{"completion": str(k)} for k in range(8)])
    problems = load_task("arithmetic").examples("test", 0, 8)
    answers = [{"uid": e.uid, "prompt": e.prompt, "response": "4"} for e in problems]
    for name in ("first", "answers"):
        text = "".join(f"{json.dumps(row)}\n" for row in answers)
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    rows = (repository("tests/data/gsm8k/test.jsonl")).read_text(encoding="utf-8").splitlines()[:8]
    samples = [
        {"doc_id": at, "doc": json.loads(row), "target": json.loads(row)["answer"]}
        | {"resps": [["#### 4"]], "filter": "strict-match"}
        for at, row in enumerate(rows)
    ]
    for name in ("2026-11-20", "2026-11-20T10-00-00"):
        _lines(folder / f"samples_gsm8k_{name}.jsonl", samples)


def _lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


@pytest.fixture
def make_folder(place, tmp_path):
    """`make_folder(name)`: a copy of the place, which shares its files by hard links."""

    def make(name):
        folder = tmp_path / name
        shutil.copytree(place, folder, symlinks=True, copy_function=os.link)
        (folder / "other").unlink()
        (folder / "other").symlink_to(next((folder / "runs/NAME/cells").glob("*/checkpoint")))
        return folder

    return make
