"""Plugins by name, from entry points and from `--plugin FILE`; the only way from core to plugins.

A plugin that fails to import is listed with its error and breaks nothing else.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, cast, get_args

from .contracts import Engine, Executor, Loss, Report, Task
from .errors import UserError, did_you_mean
from .parameters import build, split_spec

Group = Literal["tasks", "losses", "engines", "executors", "reports"]
GROUPS: tuple[Group, ...] = get_args(Group)
_PROTOCOLS: Mapping[Group, type] = {
    "tasks": Task,
    "losses": Loss,
    "engines": Engine,
    "executors": Executor,
    "reports": Report,
}
_from_files: dict[Group, dict[str, type]] = {group: {} for group in GROUPS}
_files: list[Path] = []


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered plugin: its class, or the error that its import gave."""

    name: str
    origin: str
    plugin: type | None
    error: str | None


def names(group: Group) -> list[str]:
    """The names of a group, without importing any plugin."""
    return sorted(
        {e.name for e in entry_points(group=f"smmd_bench.{group}")} | set(_from_files[group])
    )


def entries(group: Group) -> list[Entry]:
    """Every plugin of a group, imported, by name; broken ones carry their error."""
    return [_entry(group, name) for name in names(group)]


def load(group: Group, spec: str) -> Any:
    """Make the plugin that a spec such as `smmd[sigma=2]` names.

    Raises UserError for an unknown name, a bad parameter, or a plugin that cannot be imported.
    """
    name, values = split_spec(spec)
    if name not in names(group):
        raise UserError(
            f"Unknown {singular(group)} '{name}': {did_you_mean(name, names(group))} "
            f"(see `smmd-bench ls`)."
        )
    entry = _entry(group, name)
    if entry.plugin is None:
        raise UserError(
            f"The {singular(group)} '{name}' of {entry.origin} cannot be used: {entry.error}."
        )
    return build(entry.plugin, name, values)


def load_task(spec: str) -> Task:
    """The task that a spec names; see `load`."""
    return cast(Task, load("tasks", spec))


def load_loss(spec: str) -> Loss:
    """The loss that a spec names; see `load`."""
    return cast(Loss, load("losses", spec))


def load_engine(spec: str) -> Engine:
    """The engine that a spec names; see `load`."""
    return cast(Engine, load("engines", spec))


def load_plugin_file(path: Path) -> None:
    """Register every plugin class that a Python file defines (`--plugin FILE`).

    Raises UserError if the file is missing, fails to import or defines no plugin.
    """
    path = path.resolve()
    if path in _files:
        return
    if not path.is_file():
        raise UserError(f"The plugin file {path} does not exist.")
    digest = hashlib.blake2b(str(path).encode(), digest_size=6).hexdigest()
    module_name = f"smmd_bench_plugin_{path.stem}_{digest}"
    specification = importlib.util.spec_from_file_location(module_name, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[module_name] = module
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        raise UserError(f"The plugin file {path} fails to import: {_say(error)}.") from error
    found = False
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module_name:
            for group, protocol in _PROTOCOLS.items():
                if _looks_like(value, protocol):
                    _from_files[group][str(value.name)] = value  # type: ignore[attr-defined]
                    found = True
    if not found:
        raise UserError(
            f"The plugin file {path} defines no task, loss, engine, executor or report."
        )
    _files.append(path)


def plugin_files() -> list[Path]:
    """The files given by `--plugin`, for processes that must load them again."""
    return list(_files)


def singular(group: Group) -> str:
    """`losses` -> `loss`."""
    return "loss" if group == "losses" else group.removesuffix("s")


def _entry(group: Group, name: str) -> Entry:
    if name in _from_files[group]:
        return Entry(
            name,
            sys.modules[_from_files[group][name].__module__].__file__ or "",
            _from_files[group][name],
            None,
        )
    point = next(e for e in entry_points(group=f"smmd_bench.{group}") if e.name == name)
    origin = point.dist.name if point.dist else point.value
    try:
        return Entry(name, origin, point.load(), None)
    except Exception as error:
        return Entry(name, origin, None, _say(error))


def _say(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".").splitlines()[0]


def _looks_like(plugin: type, protocol: type) -> bool:
    wanted = {
        name
        for base in protocol.__mro__
        for name in [*vars(base), *getattr(base, "__annotations__", {})]
        if not name.startswith("_")
    }
    have = set(dir(plugin)) | set(getattr(plugin, "__dataclass_fields__", {}))
    return bool(wanted) and wanted <= have and isinstance(getattr(plugin, "name", None), str)
