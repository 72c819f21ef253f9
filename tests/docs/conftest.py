"""A folder with everything that documented commands name: a finished run, files, checkpoints."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from smmd_bench.plugin_system.registry import load_task
from smmd_bench.publishing import style
from smmd_bench.publishing.make_report import FIGURE_METADATA as FORMS
from tests.regression.questions import write_mmlu

from .calls import SMALL, call
from .commands import repository

MakeFolder = Callable[[str], Path]
_RUN = ("--task=arithmetic", "--losses=ce,ntl,smmd", "--seeds=0,1", "--out=runs/NAME")
_PLUGINS = {"task": ("my_task",), "report": ("my_figure",)}


@pytest.fixture(scope="package", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder of this test's own."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SMMD_BENCH_CACHE", str(folder))
        patch.setattr(style, "STYLE", _coarse(folder))  # nobody looks at these figures
        patch.delitem(FORMS, "pdf")
        yield folder


def _coarse(folder: Path) -> Path:
    file = folder / "coarse.mplstyle"
    file.write_text(style.STYLE.read_text().replace("savefig.dpi: 160", "savefig.dpi: 25"))
    return file


@pytest.fixture(scope="package")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What stands for the names in the documentation: runs/NAME, ./my-checkpoint, ce.jsonl ..."""
    folder = tmp_path_factory.mktemp("place")
    for name in ("examples", "experiments", "tests"):
        (folder / name).symlink_to(repository(name))
    (folder / "data").symlink_to(repository("tests/data"))
    (folder / "my-checkpoint").symlink_to(repository("smmd_bench/models/builtin/tiny"))
    status, said = call(["train-eval", *_RUN, *SMALL["train-eval"]], folder)
    assert status == 0, said
    for name in ("BEFORE", "AFTER"):
        (folder / "runs" / name).symlink_to(folder / "runs/NAME")
    trained = next((folder / "runs/NAME/cells").glob("*/checkpoint"))
    (folder / "other").symlink_to(trained)
    for kind, names in _PLUGINS.items():
        for name in names:
            call(["new", kind, name], folder)
    write_mmlu(folder / "DIR/mmlu/cais/mmlu")
    (folder / "DIR/samsum").symlink_to(repository("tests/data/samsum"))
    _write_predictions(folder)
    return folder


def _write_predictions(folder: Path) -> None:
    """Eight answers in each of the formats that the pages name."""
    for name in ("ce", "smmd"):
        _lines(folder / f"{name}.jsonl", [{"completion": str(k)} for k in range(8)])
    problems = load_task("arithmetic").examples("test", 0, 8)
    body = {"body": {"choices": [{"message": {"content": "4"}, "finish_reason": "stop"}]}}
    answers = [{"custom_id": e.uid, "response": {"status_code": 200, **body}} for e in problems]
    for name in ("batch", "answers"):
        _lines(folder / f"{name}.jsonl", answers)
    rows = (repository("tests/data/gsm8k/test.jsonl")).read_text(encoding="utf-8").splitlines()[:8]
    samples = [
        {"doc_id": at, "doc": json.loads(row), "target": json.loads(row)["answer"]}
        | {"resps": [["#### 4"]], "filter": "strict-match"}
        for at, row in enumerate(rows)
    ]
    for name in ("2026-11-20", "2026-11-20T10-00-00"):
        _lines(folder / f"samples_gsm8k_{name}.jsonl", samples)


def _lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


@pytest.fixture
def make_folder(place: Path, tmp_path: Path) -> MakeFolder:
    """`make_folder(name)`: a copy of the place, which shares its files by hard links."""

    def make(name: str) -> Path:
        folder = tmp_path / name
        shutil.copytree(place, folder, symlinks=True, copy_function=os.link)
        (folder / "other").unlink()
        (folder / "other").symlink_to(next((folder / "runs/NAME/cells").glob("*/checkpoint")))
        return folder

    return make
