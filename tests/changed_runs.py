"""Copies of a synthetic run that say, or lack, something else."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from smmd_bench.results.frames import RunFrames, read_run
from smmd_bench.storage.cell import StoredCell
from smmd_bench.storage.files import read_json, write_json, write_parquet

NO_MEMORY = {"stage": "train", "error": "no memory"}
"""A failure, for `without`."""


def changed(
    run: RunFrames, folder: Path, name: str, change: Callable[[Any], Any], **where: Any
) -> RunFrames:
    """A copy of a run in `folder`, in which this file of its cells holds `change(content)`.

    `cell` is what the manifest says of a cell; `where` is what it says of those that are changed.
    Without a copy if the run lies in the folder already.
    """
    run = _copied(run, folder)
    if name == "cell":
        cells = [change(cell) if _fits(cell, where) else cell for cell in run.manifest["cells"]]
        return with_manifest(run, folder, cells=cells)
    for cell in _cells(run, where):
        file = _file(run, cell, name)
        if file is None or not file.exists():
            continue
        if name.endswith(".json"):
            write_json(file, change(read_json(file) or {}))
        else:
            write_parquet(file, change(pd.read_parquet(file)))
    return read_run(folder)


def without(
    run: RunFrames,
    folder: Path,
    name: str = "metrics.json",
    failure: Mapping[str, Any] | None = None,
    **where: Any,
) -> RunFrames:
    """A copy of a run in `folder`, whose cells lost this file, for a failure if there is one.

    `where` is what the manifest says of the cells that lose it. Without metrics.json a cell has no
    results.
    """
    run = _copied(run, folder)
    for cell in _cells(run, where):
        file = _file(run, cell, name)
        if file is not None and name == "metrics.json":
            shutil.rmtree(file.parent, ignore_errors=True)
        elif file is not None:
            file.unlink(missing_ok=True)
        if failure is not None:
            write_json(folder / "failed" / f"{cell.key}.json", failure)
    return read_run(folder)


def with_manifest(run: RunFrames, folder: Path, **changes: Any) -> RunFrames:
    """A copy of a run in `folder`, whose manifest says something else."""
    file = _copied(run, folder).path / "manifest.json"
    write_json(file, {**(read_json(file) or {}), **changes})
    return read_run(folder)


def made_elsewhere(run: RunFrames, folder: Path, names: Mapping[str, str]) -> RunFrames:
    """A copy of a run in `folder`, as if it were of files of completions: `names` are their labels
    by the losses of the run, that of the reference first."""
    reference, *_ = names.values()

    def renamed(cell: Any) -> Any:
        return {**cell, "loss": names[cell["loss"]], "reference": reference}

    run = changed(run, folder, "cell", renamed)
    return with_manifest(run, folder, predictions={"labels": [*names.values()]})


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


def _file(run: RunFrames, cell: StoredCell, name: str) -> Path | None:
    """Where a file of a cell is; None: it has none."""
    if name == "comparison.json":
        others = {p.mine["address"]: p.other for p in run.compared if p.kind == "comparison"}
        other = others.get(cell.address)
        return other and cell.compared_with(run.current(other["address"])) / name
    if name.endswith(".parquet"):
        return cell.place(name.removesuffix(".parquet"))  # type: ignore[arg-type]
    folder = {
        "metrics.json": cell.measured,
        "selection.json": cell.selected,
        "decode.json": cell.decoded,
        "receipt.json": cell.trained if "train" in cell.parts else None,
    }[name]
    return None if folder is None else folder / name
