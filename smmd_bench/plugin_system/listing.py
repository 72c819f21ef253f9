"""A plugin as `smmd-bench ls` and completion show it: summary, parameters, version, sources."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .parameters import build, parameters_of, spell
from .registry import Entry, Group, entry, names, own_points
from .written_plugin import written_summary


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
    """Every plugin of a group, by name.

    Unless `whole`, first-party plugins have only their summary and are not imported: the import of
    torch alone takes seconds.
    """
    known = {} if whole else own_summaries(group)
    return [
        Listed(name, known[name]) if name in known else describe(entry(group, name))
        for name in names(group)
    ]


def own_summaries(group: Group) -> dict[str, str]:
    """First-party plugins by name, with the first line of their docstring; none is imported."""
    return {name: written_summary(point) for name, point in own_points(group).items()}


def describe(entry: Entry) -> Listed:
    """What an imported plugin says of itself; an error if one of its attributes cannot be read."""
    plugin, origin = entry.plugin, _origin(entry)
    if plugin is None:
        return Listed(entry.name, origin=origin, error=entry.error)
    made: Any = plugin
    with suppress(Exception):  # a plugin's own
        made = build(plugin, entry.name, {})
    try:
        return Listed(
            name=entry.name,
            summary=(plugin.__doc__ or "").strip().partition("\n")[0],
            version=_of(int, getattr(plugin, "version", None)),
            parameters=tuple(
                {"name": p.name, "type": p.type, "default": spell(p.default), "help": p.help}
                for p in parameters_of(plugin).values()
            ),
            licence=_of(str, getattr(made, "licence", None)),
            sources=tuple(map(_source, getattr(made, "sources", ()))),
            scales=_scales(getattr(plugin, "relative_scale", {})),
            scales_of=_of(str, getattr(plugin, "relative_scale_of", None)),
            origin=origin,
        )
    except Exception as error:  # a plugin's own
        said = (str(error).strip() or "without a message").splitlines()[0]
        text = f"its attributes cannot be read ({type(error).__name__}: {said})"
        return Listed(entry.name, origin=origin, error=text)


def _of(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else None


def _scales(given: Mapping[Any, Any]) -> dict[str, float]:
    scales = {str(n): float(scale) for n, scale in given.items()}
    if not all(map(math.isfinite, scales.values())):
        raise ValueError(f"relative_scale is not finite: {scales}")
    return scales


def _source(source: Any) -> dict[str, str]:
    hub = getattr(source, "hub", None)
    said = {
        "name": getattr(source, "name", None),
        "hub": getattr(hub, "repository", None),
        "revision": getattr(hub, "revision", None),
    }
    return {key: value for key, value in said.items() if isinstance(value, str)}


def _origin(entry: Entry) -> dict[str, str]:
    """The file of a plugin, and the distribution that registers it."""
    found = {}
    module = sys.modules.get(getattr(entry.plugin, "__module__", ""))
    if (file := getattr(module, "__file__", None)) is not None:
        found["file"] = file
    if entry.origin != file:
        found["distribution"] = entry.origin
        with suppress(PackageNotFoundError, ValueError):  # the origin is no distribution
            found["version"] = version(entry.origin)
    return found
