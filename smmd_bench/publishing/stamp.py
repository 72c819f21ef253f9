"""What the reports of a run follow from: what the run holds, and the code that reads it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..plugin_system.registry import Group, plugin_files, points
from ..results.frames import read_run
from ..results.regression import current_evaluations
from ..storage.addresses import address
from ..storage.files import parquet_made_with, read_json

if TYPE_CHECKING:
    from ..storage.current import CurrentCell

_GROUPS: tuple[Group, ...] = ("reports", "tasks", "losses")
_LIBRARIES = ("matplotlib", "pandas", "numpy", "scipy", "statsmodels", "scikit-learn", "jinja2")


def report_stamp(folder: Path) -> str:
    """A digest of all that the reports of a run follow from, but for pictures of the examples."""
    run = read_run(folder)
    cells = {str(a): run.current(str(a)) for a in run.cells["address"]}
    against = {mine["address"]: cells[other["address"]] for mine, other in run.compared}
    checks = [
        [suite["address"], (read_json(path / "comparison.json") or {}).get("address")]
        for path, suite in current_evaluations(run)
    ]
    return address(
        {
            "manifest": run.manifest,
            "cells": {a: _state(cell, against.get(a)) for a, cell in cells.items()},
            "regression": checks,
            "overhead": {f.name: _digest([f]) for f in sorted(folder.glob("*.parquet"))},
            "code": _digest(sorted(_code())),
            "libraries": {name: _version(name) for name in _LIBRARIES},
        }
    )


def _state(cell: CurrentCell, other: CurrentCell | None) -> dict[str, Any]:
    compared = other is not None and cell.comparison(other) is not None
    return {
        "cell": read_json(cell.folder / "cell.json"),
        "trained": cell.receipt,
        "log": cell.has("train_log"),
        "selected": cell.selection,
        "measured": None if cell.metrics is None else cell.measure_stamp,
        "decoded with": parquet_made_with(cell.folder / "completions.parquet"),
        "against": other.measure_stamp if other is not None and compared else None,
        "failure": cell.failure,
    }


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _code() -> Iterator[Path]:
    """Files of this package, and of the packages and files that reports, and what they load, come
    from."""
    yield from (f for f in Path(__file__).parents[1].rglob("*") if _is_source(f))
    modules = {p.module for group in _GROUPS for p in points(group).values()}
    for package in {module.rpartition(".")[0] or module for module in modules}:
        try:
            found = find_spec(package)
        except ImportError:  # of a plugin that cannot be used
            continue
        for place in (found.submodule_search_locations or ()) if found else ():
            yield from (file for file in Path(place).iterdir() if _is_source(file))
    yield from plugin_files()


def _is_source(file: Path) -> bool:
    return file.is_file() and not {"__pycache__", "builtin"} & {*file.parts}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
