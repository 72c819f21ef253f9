"""Copies of a synthetic run that say, or lack, something else."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from smmd_bench.results.frames import RunFrames, read_run
from smmd_bench.storage.files import read_json, write_json
from tests.runs import rewrite, write_failure

NO_MEMORY = {"stage": "train", "error": "no memory"}
"""A failure, for `without`."""


def changed(
    run: RunFrames, folder: Path, name: str, change: Callable[[Any], Any], **where: Any
) -> RunFrames:
    """A copy of a run in `folder`, in which this file of its cells holds `change(content)`.

    `where` is what cell.json says of the cells that are changed. Without a copy if the run lies in
    the folder already.
    """
    for cell in _cells(_copied(run, folder), where):
        file = cell / name
        if name.endswith(".json"):
            write_json(file, change(read_json(file) or {}))
        elif file.exists():
            rewrite(file, change(pd.read_parquet(file)))
    return read_run(folder)


def without(
    run: RunFrames,
    folder: Path,
    name: str = "metrics.json",
    failure: Mapping[str, Any] | None = None,
    **where: Any,
) -> RunFrames:
    """A copy of a run in `folder`, whose cells lost this file, for a failure if there is one.

    `where` is what cell.json says of the cells that lose it. Without metrics.json a cell has no
    results.
    """
    for cell in _cells(_copied(run, folder), where):
        (cell / name).unlink(missing_ok=True)
        if failure is not None:
            write_failure(cell, failure)
    return read_run(folder)


def with_manifest(run: RunFrames, folder: Path, **changes: Any) -> RunFrames:
    """A copy of a run in `folder`, whose manifest says something else."""
    file = _copied(run, folder) / "manifest.json"
    write_json(file, {**(read_json(file) or {}), **changes})
    return read_run(folder)


def made_elsewhere(run: RunFrames, folder: Path, names: Mapping[str, str]) -> RunFrames:
    """A copy of a run in `folder`, as if it were of files of completions: `names` are their labels
    by the losses of the run, that of the reference first."""
    reference, *others = names.values()

    def renamed(content: Any) -> Any:
        keys = {"loss", "against_loss"} & {*content}
        return {**content, **{key: names[content[key]] for key in keys}}

    run = changed(run, folder, "cell.json", lambda cell: {**renamed(cell), "reference": reference})
    for loss in others:
        run = changed(run, folder, "comparison.json", renamed, loss=loss)
    return with_manifest(run, folder, predictions={"labels": [*names.values()]})


def _copied(run: RunFrames, folder: Path) -> Path:
    if run.path != folder:
        shutil.copytree(run.path, folder, dirs_exist_ok=True)
    return folder


def _cells(folder: Path, where: Mapping[str, Any]) -> Iterator[Path]:
    for file in sorted(folder.glob("cells/*/cell.json")):
        if where.items() <= (read_json(file) or {}).items():
            yield file.parent
