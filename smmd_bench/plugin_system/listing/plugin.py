"""One plugin as people and machines see it: summary, parameters, version, licence, sources."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..parameters import build, parameters_of, spell
from ..registry import Entry


@dataclass(frozen=True)
class ListedParameter:
    """A parameter with its default as it is spelled."""

    name: str
    type: str
    default: str
    help: str


@dataclass(frozen=True)
class Listed:
    """A plugin of a group, or the error for which it cannot be used.

    `origin`: the distribution and its version, and the file. `sources`: name, hub repository and
    revision of the data. `scales`: weighted auxiliary over cross-entropy at a uniform guess, by N.
    """

    name: str
    summary: str = ""
    version: int | None = None
    parameters: tuple[ListedParameter, ...] = ()
    licence: str | None = None
    sources: tuple[Mapping[str, str], ...] = ()
    scales: Mapping[str, float] = field(default_factory=dict)
    scales_of: str | None = None
    origin: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None


def listed(entry: Entry) -> Listed:
    """What an imported entry says of itself; an error where an attribute of it cannot be read."""
    if entry.plugin is None:
        return Listed(entry.name, origin=_origin(entry), error=entry.error)
    try:
        return _read(entry, entry.plugin)
    except Exception as error:  # a plugin's own
        said = (str(error).strip() or "without a message").splitlines()[0]
        text = f"its attributes cannot be read ({type(error).__name__}: {said})"
        return Listed(entry.name, origin=_origin(entry), error=text)


def _read(entry: Entry, plugin: type) -> Listed:
    made = _made(plugin, entry.name)
    return Listed(
        name=entry.name,
        summary=(plugin.__doc__ or "").strip().partition("\n")[0],
        version=_of(int, getattr(plugin, "version", None)),
        parameters=tuple(
            ListedParameter(p.name, p.type, spell(p.default), p.help)
            for p in parameters_of(plugin).values()
        ),
        licence=_of(str, getattr(made, "licence", None)),
        sources=tuple(map(_source, getattr(made, "sources", ()))),
        scales=_scales(getattr(plugin, "relative_scale", {})),
        scales_of=_of(str, getattr(plugin, "relative_scale_of", None)),
        origin=_origin(entry),
    )


def from_json(content: Mapping[str, Any]) -> Listed:
    """What `dataclasses.asdict` and JSON have made of one; raises TypeError for anything else."""
    parameters = tuple(ListedParameter(**parameter) for parameter in content["parameters"])
    return Listed(**{**content, "parameters": parameters, "sources": tuple(content["sources"])})


def _made(plugin: type, name: str) -> Any:
    """The plugin with its defaults; the class, where it cannot be made."""
    try:
        return build(plugin, name, {})
    except Exception:  # a plugin's own
        return plugin


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
