"""The listing of a group, kept in the cache folder: to import every plugin takes seconds.

It counts as long as nothing that it was read from has changed: the interpreter, the installed
distributions, the entry points, and every source file that importing the plugins has loaded from
their packages (by size and modification time). A plugin that could not be imported is tried again
each time. Without a cache folder that can be written, nothing is kept.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...errors import UserError
from ...storage.addresses import address, cache_folder
from ...storage.data_files import VARIABLE
from ...storage.files import read_json, write_json
from ..registry import Group, entries, entry, names, plugin_files, points
from .plugin import Listed, from_json, listed

FORMAT = 1


def listing(group: Group) -> list[Listed]:
    """Every plugin of a group, by name; those of `--plugin` files are imported each time."""
    if plugin_files():
        return [listed(found) for found in entries(group)]
    file = _file(group)
    surroundings = _surroundings(group)
    kept = _read(file, surroundings)
    if kept is None:
        kept = [listed(found) for found in entries(group)]
        _write(file, surroundings, kept)
    return [listed(entry(group, item.name)) if item.error else item for item in kept]


def known_summaries(group: Group) -> dict[str, str]:
    """The names of a group with their summaries, where an earlier listing knows them; nothing is
    imported, and a summary may be out of date: for completion."""
    try:
        kept = read_json(_file(group)) or {}
        known = {item["name"]: str(item["summary"]) for item in kept["plugins"]}
    except (OSError, UserError, KeyError, TypeError):
        known = {}
    return {name: known.get(name, "") for name in names(group)}


def _file(group: Group) -> Path:
    name = address({"prefix": sys.prefix, "python": sys.version})
    return cache_folder() / "listing" / f"{name}-{group}.json"


def _read(file: Path, surroundings: str) -> list[Listed] | None:
    try:
        content = read_json(file)
        if content is None or content["surroundings"] != surroundings:
            return None
        if any(_state(path) != state for path, state in content["files"].items()):
            return None
        return [from_json(item) for item in content["plugins"]]
    except (OSError, UserError, KeyError, TypeError, AttributeError):  # not of our making
        return None


def _write(file: Path, surroundings: str, found: Iterable[Listed]) -> None:
    content = {
        "surroundings": surroundings,
        "files": {path: _state(path) for path in _loaded(found)},
        "plugins": [asdict(item) for item in found],
    }
    try:
        write_json(file, content)
    except (OSError, UserError):  # no cache folder, or no room in it
        return


def _surroundings(group: Group) -> str:
    """A digest of what decides which plugins there are, and what they may import."""
    installed = []
    for place in sys.path:
        if Path(place or ".").is_dir():
            with os.scandir(place or ".") as found:
                installed += [
                    [place, item.name, item.stat().st_mtime_ns]
                    for item in found
                    if item.name.endswith((".dist-info", ".egg-info", ".pth"))
                ]
    return address(
        {
            "format": FORMAT,
            "installed": sorted(installed),
            "points": [[name, point.value] for name, point in sorted(points(group).items())],
            "data": os.environ.get(VARIABLE),
        }
    )


def _loaded(found: Iterable[Listed]) -> list[str]:
    """The files of all modules that lie beside a plugin's, in this package, or that nobody has
    installed."""
    tops = {__name__.partition(".")[0]}
    files = {item.origin.get("file") for item in found}
    modules: dict[str, str] = {}
    for name, module in [*sys.modules.items()]:
        if isinstance(file := getattr(module, "__file__", None), str):
            modules[name] = file
            if file in files:
                tops.add(name.partition(".")[0])
    libraries = tuple(f"{path}{os.sep}" for path in _libraries())
    return sorted(
        {
            file
            for name, file in modules.items()
            if name.partition(".")[0] in tops or not file.startswith(libraries)
        }
    )


def _libraries() -> list[str]:
    import sysconfig

    return [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]


def _state(path: str) -> Any:
    """Size and modification time; None: it is gone."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns]
