"""A plugin as `smmd-bench ls` shows it: summary, parameters, version, sources."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import reason_of
from .parameters import build, parameters_of, spell
from .registry import Entry, Group, entry, names, own_points


@dataclass(frozen=True)
class Listed:
    """A plugin of a group, or the error for which it cannot be used.

    `parameters`: name, type, default as it is spelled, help. `origin`: the distribution and its
    version, and the file. `sources`: name, hub repository and revision of the data. `scales`:
    weighted auxiliary over cross-entropy at a uniform guess, by N.
    """

    name: str
    summary: str = ""
    version: int | None = None
    parameters: tuple[Mapping[str, str], ...] = ()
    licence: str | None = None
    sources: tuple[Mapping[str, str], ...] = ()
    scales: Mapping[str, float] = field(default_factory=dict)
    scales_of: str | None = None
    origin: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None


def listing(group: Group, *, whole: bool = True) -> list[Listed]:
    """Every plugin of a group, by name. Unless `whole`, first-party plugins have only their summary
    and are not imported: the import of torch alone takes seconds."""
    # A plugin from outside is read in any case: it may be broken, and the list says so.
    unread = {} if whole else own_points(group)
    listed = []
    for name in names(group):
        if name in unread:
            listed.append(Listed(name, _written_summary(unread[name])))
        else:
            listed.append(_describe(entry(group, name)))
    return listed


def _describe(entry: Entry) -> Listed:
    """What an imported plugin says of itself; an error if one of its attributes cannot be read."""
    plugin = entry.plugin
    origin = _origin(entry)
    if plugin is None:
        return Listed(entry.name, origin=origin, error=entry.error)
    # Attributes of a plugin are properties at times, and those can fail.
    try:
        instance = build(plugin, entry.name, {})
        return Listed(
            name=entry.name,
            summary=(plugin.__doc__ or "").strip().partition("\n")[0],
            version=getattr(plugin, "version", None),
            parameters=tuple(
                {
                    "name": p.name,
                    "type": p.kind.name,
                    "default": spell(p.default),
                    "help": p.help,
                }
                for p in parameters_of(plugin).values()
            ),
            licence=getattr(instance, "licence", None),
            sources=tuple(map(_source, getattr(instance, "sources", ()))),
            scales={
                str(n): s for n, s in getattr(plugin, "relative_scale", {}).items()
            },
            scales_of=getattr(plugin, "relative_scale_of", None),
            origin=origin,
        )
    except Exception as error:  # a plugin's own
        text = f"its attributes cannot be read ({type(error).__name__}: {reason_of(error)})"
        return Listed(entry.name, origin=origin, error=text)


def _written_summary(point: EntryPoint) -> str:
    """The first line of the class's docstring, from the source; nothing is imported to read it."""
    spec = find_spec(point.module)
    if spec is None or spec.origin is None:
        return ""
    for node in ast.parse(Path(spec.origin).read_bytes()).body:
        if isinstance(node, ast.ClassDef) and node.name == point.attr:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""


def _source(source: Any) -> dict[str, str]:
    hub = getattr(source, "hub", None)
    at = {"hub": hub.repository, "revision": hub.revision} if hub else {}
    return {"name": str(source.name), **at}


def _origin(entry: Entry) -> dict[str, str]:
    """The file of a plugin, and the distribution that registers it."""
    file = getattr(
        sys.modules.get(getattr(entry.plugin, "__module__", "")), "__file__", None
    )
    origin = {} if file is None else {"file": file}
    if entry.origin != file:
        origin["distribution"] = entry.origin
        # An origin may be no distribution.
        with suppress(PackageNotFoundError, ValueError):
            origin["version"] = version(entry.origin)
    return origin
