"""A run folder that somebody sends: its manifest, and the JSON files of its cells."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from smmd_bench.results.frames import RunFrames, read_run
from smmd_bench.storage.files import read_json, write_json
from smmd_bench.storage.manifest import read_manifest
from tests.runs import write_run

from .settings import folder

FILES = ("manifest", "cell", "train", "selection", "metrics", "comparison", "decode", "FAILED")


def manifest(data: bytes) -> None:
    """The bytes of a manifest: what is read can be written, and reads the same."""
    run = folder() / "run"
    run.mkdir(exist_ok=True)
    (run / "manifest.json").write_bytes(data)
    content = read_json(run / "manifest.json")
    assert isinstance(content, dict)
    if _is_finite(content):
        write_json(folder() / "again.json", content)
        assert read_json(folder() / "again.json") == content
    assert read_manifest(run) == content
    assert read_run(run).cells.empty


def cell(data: bytes) -> None:
    """Changes of the JSON files of a run of two cells: `{"cell": {"seed": 1}}`."""
    try:
        changes = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(changes, dict):
        return
    run, files = small_run().path, _files()
    try:
        for name in {*FILES} & {*changes}:
            for file, content in files.items():
                if file.stem == name:
                    _change(file, content, changes[name])
        frames = read_run(run)
        for frame in (frames.cells, frames.metrics, frames.comparisons, frames.selection):
            assert [*frame.columns]
        assert isinstance(frames.manifest, dict)
    finally:
        for hidden in run.rglob(".*.damaged"):
            hidden.unlink()
        for file, content in files.items():
            if file.stem in changes:
                file.write_text(json.dumps(content), encoding="utf-8")


def _change(file: Path, content: dict[str, Any], change: Any) -> None:
    """Replace the keys that a mapping names (null: without it); anything else replaces all."""
    if isinstance(change, dict):
        change = {k: v for k, v in {**content, **change}.items() if v != "ABSENT"}
    file.write_text(json.dumps(change), encoding="utf-8")


@cache
def small_run() -> RunFrames:
    """A run of two cells."""
    run = folder() / "small"
    return write_run(run, losses=("ce",), seeds=(0,), n=4, steps=2, resamples=5)


@cache
def _files() -> dict[Path, dict[str, Any]]:
    """The content of its JSON files, without their checksums."""
    return {file: read_json(file) or {} for file in sorted(small_run().path.rglob("*.json"))}


def _is_finite(content: Any) -> bool:
    try:
        json.dumps(content, allow_nan=False)
    except ValueError:
        return False
    return True
