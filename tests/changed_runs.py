"""Copies of a synthetic run that say, or lack, something else."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from smmd_bench.results.frames import RunFrames, read_run
from smmd_bench.storage.cell import StoredCell
from smmd_bench.storage.files import read_json, write_json, write_parquet

NO_MEMORY = {"stage": "train", "error": "no memory"}
"""A failure, for `without`."""


def changed(run: RunFrames, folder: Path, name: str, change, **where: Any) -> RunFrames:
    """A copy of a run in `folder`, in which this Parquet file of its cells holds `change(frame)`.

    `cell` is what the manifest says of a cell; `where` is what it says of those that are changed.
    """
    run = _copied(run, folder)
    if name == "cell":
        cells = [
            change(cell) if _fits(cell, where) else cell
            for cell in run.manifest["cells"]
        ]
        return with_manifest(run, folder, cells=cells)

    for cell in _cells(run, where):
        file = cell.place(name.removesuffix(".parquet"))
        write_parquet(file, change(pd.read_parquet(file)))

    return read_run(folder)


def without(run: RunFrames, folder: Path, failure=None, **where) -> RunFrames:
    """A copy of a run in `folder`, whose cells lost their results, for a failure if there is one.

    `where` is what the manifest says of the cells that lose them.
    """
    run = _copied(run, folder)
    for cell in _cells(run, where):
        shutil.rmtree(cell.measured)
        if failure is not None:
            write_json(folder / "failed" / f"{cell.key}.json", failure)

    return read_run(folder)


def with_manifest(run: RunFrames, folder: Path, **changes: Any) -> RunFrames:
    """A copy of a run in `folder`, whose manifest says something else."""
    file = _copied(run, folder).path / "manifest.json"
    write_json(file, {**(read_json(file) or {}), **changes})
    return read_run(folder)


def _copied(run: RunFrames, folder: Path) -> RunFrames:
    if run.path != folder:
        shutil.copytree(run.path, folder, dirs_exist_ok=True)
    return read_run(folder)


def _fits(content: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    return where.items() <= {k: v for k, v in content.items() if k in where}.items()


def _cells(run: RunFrames, where: Mapping[str, Any]) -> Iterator[StoredCell]:
    for content in run.rows:
        if _fits(content, where):
            yield run.current(content["address"])
