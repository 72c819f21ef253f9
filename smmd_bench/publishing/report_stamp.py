"""Whether the reports of a run are current: RUN/reports/.stamp against what they follow from now.

They follow from what the run holds, from the code that reads it, and from the libraries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..plugin_system.registry import Group, plugin_files, points
from ..results.frames import read_run
from ..results.regression import current_evaluations
from ..results.tuning import trial_status
from ..storage.addresses import address
from ..storage.files import parquet_made_with, read_own_json, write_text

if TYPE_CHECKING:
    from ..storage.current import CurrentCell

_GROUPS: tuple[Group, ...] = ("reports", "tasks", "losses")
_LIBRARIES = ("matplotlib", "pandas", "numpy", "scipy", "statsmodels", "scikit-learn", "jinja2")


@contextmanager
def stamp_reports(folder: Path) -> Iterator[None]:
    """Inside, the reports do not count as current; then they are stamped with what the run held
    at the start."""
    stamp = report_stamp(folder)
    forget_reports(folder)
    yield
    write_text(_file(folder), stamp)


def forget_reports(folder: Path) -> None:
    """Let no report count as current."""
    _file(folder).unlink(missing_ok=True)


def forget_stale_reports(folder: Path) -> None:
    """The same for reports of an earlier state: newer ones among them must not vouch."""
    if reports_are_stale(folder):
        forget_reports(folder)


def reports_are_current(folder: Path) -> bool:
    """Whether all reports were written, from what the run holds now and by the code of now."""
    file = _file(folder)
    return file.exists() and file.read_text(encoding="utf-8") == report_stamp(folder)


def reports_are_stale(folder: Path) -> bool:
    """Whether the reports are of an earlier state of the run, or by other code."""
    return _file(folder).exists() and not reports_are_current(folder)


def report_stamp(folder: Path) -> str:
    """A digest of all that the reports follow from, except for the pictures of the examples."""
    run = read_run(folder)
    cells = {str(a): run.current(str(a)) for a in run.cells["address"]}
    differences: dict[str, dict[str, str | None]] = {}
    for pair in run.compared:
        mine, other = (cells[cell["address"]] for cell in (pair.mine, pair.other))
        made = mine.comparison(other, pair.file) is not None
        stamp = other.measure_stamp if made else None
        differences.setdefault(pair.mine["address"], {})[pair.file] = stamp
    checks = [
        [suite["address"], (read_own_json(path / "comparison.json") or {}).get("address")]
        for path, suite in current_evaluations(run)
    ]
    return address(
        {
            "manifest": run.manifest,
            "cells": {a: _state(cell, differences.get(a, {})) for a, cell in cells.items()},
            "trials": {a: [trial_status(t) for t in cell.trials] for a, cell in cells.items()},
            "regression": checks,
            "overhead": {f.name: _digest([f]) for f in sorted(folder.glob("*.parquet"))},
            "code": _digest(sorted(_code())),
            "libraries": {name: _version(name) for name in _LIBRARIES},
        }
    )


def _file(folder: Path) -> Path:
    return folder / "reports" / ".stamp"


def _state(cell: CurrentCell, against: dict[str, str | None]) -> dict[str, Any]:
    return {
        "cell": read_own_json(cell.folder / "cell.json"),
        "trained": cell.receipt,
        "log": cell.has("train_log"),
        "selected": cell.selection,
        "chosen": cell.choice,
        "measured": None if cell.metrics is None else cell.measure_stamp,
        "decoded with": parquet_made_with(cell.folder / "completions.parquet"),
        "against": against,
        "failure": cell.failure,
    }


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _code() -> Iterator[Path]:
    """The files of this package, and of the packages and files that reports are loaded from."""
    folders = [Path(__file__).parents[1].rglob("*")]
    modules = {point.module for group in _GROUPS for point in points(group).values()}
    for package in {module.rpartition(".")[0] or module for module in modules}:
        try:
            found = find_spec(package)
        except ImportError:  # the package of a plugin that cannot be used
            continue
        places = (found.submodule_search_locations or ()) if found else ()
        folders += [Path(place).iterdir() for place in places]
    for file in (file for folder in folders for file in folder):
        if file.is_file() and not {"__pycache__", "builtin"} & {*file.parts}:
            yield file
    yield from plugin_files()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
