"""What a plugin of somebody else does, as a digest of its source: a part of its addresses.

A first-party plugin is addressed by its `version` alone. Data files that a plugin opens are not
covered: a task's `identity` is for them.
"""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ..storage.addresses import address
from .module_source import Belongs, module_digests

_OWN = __name__.partition(".")[0]
_INSTALLED = {"site-packages", "dist-packages"}
_STANDARD = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}


def source_digest(plugin: type) -> str | None:
    """The digest of the source of a plugin class; None: it is first-party, or in no file.

    It covers the class's module and, transitively, what this imports of its own distribution. For
    a `--plugin FILE` that is the modules in the file's folder and below. Comments, docstrings and
    formatting do not count. Cached by class, because that is the code that this process runs.
    """
    return _digest(plugin)


@cache
def _digest(plugin: type) -> str | None:
    name = plugin.__module__
    file = Path(getattr(sys.modules.get(name), "__file__", None) or "")
    if name.partition(".")[0] == _OWN or not file.is_file():
        return None
    digests = module_digests(name, file, *_home(name, file))
    digests[""] = digests.pop(name, "")  # a file may be renamed, or become a package's module
    return address(digests)


def version_of(plugin: Any) -> Any:
    """The version of a plugin or a metric, with the digest of its source if it has one."""
    digest = source_digest(type(plugin))
    return plugin.version if digest is None else [plugin.version, digest]


def with_source(identity: Mapping[str, Any], plugin: Any) -> dict[str, Any]:
    """An identity with the key `source` where the plugin's source has a digest."""
    digest = source_digest(type(plugin))
    return {**identity, **({} if digest is None else {"source": digest})}


def _home(name: str, file: Path) -> tuple[Belongs, Sequence[Path]]:
    """Which modules are of a plugin's distribution, and where a single file's neighbours are."""
    top = name.partition(".")[0]
    folders: list[Path] = []
    files: set[Path] = set()
    beside: list[Path] = []
    if getattr(sys.modules.get(top), "__file__", None):  # not a namespace, which others may share
        folders += [Path(place).resolve() for place in getattr(sys.modules[top], "__path__", ())]
    for distribution in distributions():
        points = (p for p in distribution.entry_points if p.group.startswith(f"{_OWN}."))
        if any(point.module.partition(".")[0] == top for point in points):
            folders += _editable(distribution)
            listed = distribution.files or ()
            files |= {Path(str(distribution.locate_file(one))).resolve() for one in listed}
    if not folders and not files:
        folder = file.resolve().parent
        while (folder / "__init__.py").exists():  # to the folder that is on the import path
            folder = folder.parent
        folders = beside = [] if folder.name in _INSTALLED else [folder]

    def owns(module: str, place: Path) -> bool:
        if module.partition(".")[0] == _OWN:
            return False
        return place.resolve() in files or any(_is_in(place, folder) for folder in folders)

    return owns, beside


def _editable(distribution: Distribution) -> list[Path]:
    """The project's folder if the distribution is installed from it without a copy."""
    content = json.loads(distribution.read_text("direct_url.json") or "{}")
    if not content.get("dir_info", {}).get("editable"):
        return []
    return [Path(url2pathname(urlsplit(content["url"]).path)).resolve()]


def _is_in(file: Path, folder: Path) -> bool:
    """Whether a file is in a folder or below, and in no environment or Python that lies there."""
    for place in (file.absolute(), file.resolve()):
        if place.is_relative_to(folder):
            installed = _INSTALLED & {*place.relative_to(folder).parts}
            standard = (one for one in _STANDARD if one.is_relative_to(folder))
            if not installed and not any(map(place.is_relative_to, standard)):
                return True
    return False
