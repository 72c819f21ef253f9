"""What a plugin of somebody else does, as a digest of its source: a part of its addresses.

A first-party plugin is addressed by its `version` alone. Data files that a plugin opens are not
covered: a task's `identity` is for them.
"""

from __future__ import annotations

import json
import re
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ..storage.addresses import address
from .module_source import module_digests

_OWN = __name__.partition(".")[0]
_INSTALLED = {"site-packages", "dist-packages"}
_STANDARD = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}


def source_digest(plugin: type) -> str | None:
    """The digest of the source of a plugin class; None: it is first-party, or in no file.

    It covers the class's module and, transitively, what this imports of its own distribution. For
    a `--plugin FILE` that is the modules in the file's folder and below. Comments, docstrings and
    formatting do not count. Kept with the class, for that is the code that this process runs.
    """
    return _digest(plugin)


@cache
def _digest(plugin: type) -> str | None:
    name = plugin.__module__
    file = Path(getattr(sys.modules.get(name), "__file__", None) or "")
    if name.partition(".")[0] == _OWN or not file.is_file():
        return None
    home = _home(name, file)
    digests = module_digests(name, file, home.owns, home.beside)
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


@dataclass(frozen=True)
class _Home:
    """Where the modules of a distribution are; `beside`: where a single file's neighbours are."""

    folders: tuple[Path, ...]
    files: frozenset[Path] = frozenset()
    beside: tuple[Path, ...] = ()

    def owns(self, name: str, file: Path) -> bool:
        """Whether a module is one of the distribution's."""
        if name.partition(".")[0] == _OWN:
            return False
        return file.resolve() in self.files or any(_is_in(file, folder) for folder in self.folders)


def _home(name: str, file: Path) -> _Home:
    top = sys.modules.get(name.partition(".")[0])
    folders: tuple[Path, ...] = ()
    if getattr(top, "__file__", None):  # no namespace, which several distributions may share
        folders = tuple(Path(place).resolve() for place in getattr(top, "__path__", ()))
    for distribution in _distributions(name.partition(".")[0]):
        home = _Home((*folders, *_editable(distribution)), _files(distribution))
        if home.owns(name, file):
            return home
    if folders:
        return _Home(folders)
    folder = _import_folder(file)
    if folder.name in _INSTALLED:
        return _Home(())
    return _Home((folder,), beside=(folder,))


def _distributions(top: str) -> list[Distribution]:
    """The distributions whose entry points name a plugin in a top-level package."""
    return [
        distribution
        for distribution in distributions()
        if any(
            point.group.startswith(f"{_OWN}.") and re.split(r"[.:]", point.value)[0].strip() == top
            for point in distribution.entry_points
        )
    ]


def _files(distribution: Distribution) -> frozenset[Path]:
    listed = distribution.files or ()
    return frozenset(Path(str(distribution.locate_file(file))).resolve() for file in listed)


def _editable(distribution: Distribution) -> tuple[Path, ...]:
    """The project's folder, where the distribution is installed from it without a copy."""
    content = json.loads(distribution.read_text("direct_url.json") or "{}")
    if not content.get("dir_info", {}).get("editable"):
        return ()
    return (Path(url2pathname(urlsplit(content["url"]).path)).resolve(),)


def _import_folder(file: Path) -> Path:
    """The folder of a file, or where it is in a package, that of its topmost package."""
    folder = file.resolve().parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder


def _is_in(file: Path, folder: Path) -> bool:
    """Whether a file is in a folder or below, and in no environment or Python that lies there."""
    return any(
        place.is_relative_to(folder)
        and not _INSTALLED & {*place.relative_to(folder).parts}
        and not any(_lies(place, library, folder) for library in _STANDARD)
        for place in (file.absolute(), file.resolve())
    )


def _lies(place: Path, library: Path, folder: Path) -> bool:
    return place.is_relative_to(library) and library.is_relative_to(folder)
