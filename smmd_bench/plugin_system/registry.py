"""Plugins by name, from entry points and from `--plugin FILE`; the only way from core to plugins.

A plugin that fails to import is listed with its error and breaks nothing else.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, cast, get_args

from ..contracts import Engine, Executor, Loss, Report, Task
from ..errors import UserError, did_you_mean, reason_of
from .checked_task import require_metrics
from .parameters import build, split_spec, why_unusable
from .plugin_source import with_source

Group = Literal["tasks", "losses", "engines", "executors", "reports"]
GROUPS: tuple[Group, ...] = get_args(Group)
_PROTOCOLS = dict(zip(GROUPS, (Task, Loss, Engine, Executor, Report), strict=True))
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
    return sorted({*points(group), *_from_files[group]})


def entries(group: Group) -> list[Entry]:
    """Every plugin of a group, imported, by name; broken ones carry their error."""
    return [entry(group, name) for name in names(group)]


def require_known(group: Group, specs: Iterable[str]) -> None:
    """Raise UserError for the first of these specs whose name is unknown; imports no plugin."""
    for spec in specs:
        name, _ = split_spec(spec)
        if name not in names(group):
            raise UserError(
                f"Unknown {singular(group)} '{name}': {did_you_mean(name, names(group))} "
                f"(see `smmd-bench ls`; --plugin FILE adds one of your own)."
            )


def load(group: Group, spec: str) -> Any:
    """Make the plugin that a spec such as `smmd[sigma=2]` names. Raises UserError for an unknown
    name, a bad parameter, or a plugin that cannot be imported."""
    require_known(group, [spec])
    name, values = split_spec(spec)
    registered = entry(group, name)
    if registered.plugin is None:
        raise UserError(
            f"The {singular(group)} '{name}' of {registered.origin} cannot be used: "
            f"{registered.error}."
        )
    return build(registered.plugin, name, values)


@cache
def load_task(spec: str) -> Task:
    """The task that a spec names, made once; see `load`."""
    task = cast(Task, load("tasks", spec))
    require_metrics(task)
    return task


@cache
def load_loss(spec: str) -> Loss:
    """The loss that a spec names, made once; see `load`."""
    return cast(Loss, load("losses", spec))


@cache
def load_engine(spec: str) -> Engine:
    """The engine that a spec names, made once; see `load`."""
    return cast(Engine, load("engines", spec))


@cache
def engine_identity(spec: str) -> Mapping[str, Any]:
    """What of the engine that a spec names can change its answers; cached, because it is slow."""
    engine = load_engine(spec)
    return with_source(engine.identity(), engine)


def load_plugin_file(path: str | Path) -> None:
    """Register every plugin class that a Python file defines (`--plugin FILE`). Raises UserError if
    the file is missing, fails to import or defines no plugin."""
    path = Path(path).resolve()
    # A second import would make other classes of the same plugins.
    if path in _files:
        return
    if not path.is_file() or path.suffix != ".py":
        raise UserError(
            f"The plugin file {path} does not exist, or is not a Python file: give the path of a "
            "file that ends in .py."
        )

    plugins = list(_find_plugins(_import_file(path)))
    if not plugins:
        raise UserError(
            f"The plugin file {path} defines no task, loss, engine, executor or report."
        )

    for group, plugin in plugins:
        _from_files[group][plugin.name] = plugin  # type: ignore[attr-defined]
    _files.append(path)

    # A plugin of a file takes the place of an installed one that has its name.
    for loader in (load_task, load_loss, load_engine, engine_identity):
        loader.cache_clear()


def _import_file(path: Path) -> ModuleType:
    # Two files of one name are two modules.
    digest = hashlib.blake2b(str(path).encode(), digest_size=6).hexdigest()
    module = ModuleType(f"smmd_bench_plugin_{path.stem}_{digest}")
    module.__file__ = str(path)
    # A dataclass looks up the module of its class while the file still runs.
    sys.modules[module.__name__] = module

    try:
        # A loader may run the bytecode of an earlier version of the same second.
        exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise UserError(
            f"The plugin file {path} fails to import: {type(error).__name__}: {reason_of(error)}."
        ) from error
    return module


def _find_plugins(module: ModuleType) -> Iterator[tuple[Group, type]]:
    """The classes that a module itself defines, has named, and that fulfil a contract."""
    for value in vars(module).values():
        if not isinstance(value, type) or value.__module__ != module.__name__:
            continue
        # A base class that its plugins share has no name of its own.
        name = getattr(value, "name", None)
        if not isinstance(name, str):
            continue
        for group, contract in _PROTOCOLS.items():
            if not _lacking(value, contract):
                yield group, value


def plugins_of_file(path: Path) -> list[tuple[Group, str]]:
    """Group and name of the plugins that a file given by `--plugin` defines."""
    return [
        (group, name)
        for group, plugins in _from_files.items()
        for name, plugin in plugins.items()
        if sys.modules[plugin.__module__].__file__ == str(path.resolve())
    ]


def plugin_files() -> list[Path]:
    """The files given by `--plugin`, for processes that must load them again."""
    return list(_files)


def singular(group: Group) -> str:
    """`losses` -> `loss`."""
    return "loss" if group == "losses" else group.removesuffix("s")


@cache
def points(group: Group) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name, a first-party one before those of other packages."""
    return {name: same_name[0] for name, same_name in _registered(group).items()}


@cache
def _registered(group: Group) -> Mapping[str, list[EntryPoint]]:
    """The entry points that a group has of each name, those of first-party plugins first."""
    is_folder = group in ("tasks", "reports")
    _require_one_clone(group if is_folder else "plugins")
    by_name: dict[str, list[EntryPoint]] = {}
    registered = entry_points(group=f"smmd_bench.{group}")
    # The sort is stable: False, first-party, comes first.
    for point in sorted(registered, key=_is_from_outside):
        by_name.setdefault(point.name, []).append(point)
    return by_name


def _is_from_outside(point: EntryPoint) -> bool:
    return not point.module.startswith("smmd_bench.")


def _require_one_clone(root: str) -> None:
    """Raise UserError where the harness is of one clone, as PYTHONPATH can name it, and `root`, a
    package of first-party plugins, of another."""
    harness = Path(__file__).resolve().parents[1]
    spec = find_spec(f"smmd_bench.{root}")
    folder = Path(spec.origin).resolve().parent if spec and spec.origin else None

    # They lie inside of the harness where a wheel is installed, beside it in a clone.
    if folder not in (harness / root, harness.parent / root):
        raise UserError(
            f"smmd_bench comes from {harness.parent}, and its {root} from "
            f"{folder.parent if folder else 'nowhere'}: unset PYTHONPATH, or install the one that "
            "you mean with pip install -e."
        )


def package_of(group: Group, name: str) -> str | None:
    """The distribution that a plugin from outside comes from, and its version; None: the plugin is
    first-party, or of a file."""
    point = None if name in _from_files[group] else points(group).get(name)
    return _package(point) if point is not None and _is_from_outside(point) else None


def outside_packages() -> dict[str, str]:
    """The distributions from outside that register plugins, and their versions."""
    registered = (point for group in GROUPS for point in points(group).values())
    outside = (point.dist for point in registered if _is_from_outside(point))
    return {package.name: package.version for package in outside if package}


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def own_points(group: Group) -> dict[str, EntryPoint]:
    """The entry points of first-party plugins that nothing else has the name of, by name."""
    unique = {}
    for name, (point, *rivals) in _registered(group).items():
        if rivals or name in _from_files[group] or _is_from_outside(point):
            continue
        unique[name] = point
    return unique


def entry(group: Group, name: str) -> Entry:
    """One of a group's `names`, imported."""
    if name in _from_files[group]:
        plugin = _from_files[group][name]
        origin = sys.modules[plugin.__module__].__file__ or ""
        complaint = why_unusable(plugin)
        return Entry(name, origin, None if complaint else plugin, complaint)

    point = points(group)[name]
    origin = point.dist.name if point.dist else point.value
    rivals = _registered(group).get(name, [])[1:]
    # No guess which of two packages is meant: their results would differ.
    if rivals:
        packages = " and ".join(map(_package, rivals))
        twice = f"{packages} names one so, too: rename that, or uninstall the package"
        return Entry(name, origin, None, twice)

    # Whatever a plugin raises, the others stay usable.
    try:
        plugin = point.load()
    except (Exception, SystemExit) as error:
        return Entry(name, origin, None, f"{type(error).__name__}: {reason_of(error)}")

    complaint = _find_fault(plugin, group, name)
    return Entry(name, origin, None if complaint else plugin, complaint)


def _find_fault(plugin: Any, group: Group, name: str) -> str | None:
    """Why a plugin of an entry point cannot be used, and the remedy; None: it can."""
    lacking = _lacking(plugin, _PROTOCOLS[group])
    if lacking:
        return f"it lacks {', '.join(lacking)}"
    if plugin.name != name:
        return f"its class has the name '{plugin.name}': give the entry point the same"
    return why_unusable(plugin)


def _lacking(plugin: Any, protocol: type) -> list[str]:
    """The attributes and methods of a contract that a plugin does not have."""
    wanted: set[str] = set()
    for base in protocol.__mro__:
        wanted |= {*vars(base), *getattr(base, "__annotations__", {})}
    # A field without a default is no attribute of its class.
    attributes = {*dir(plugin), *getattr(plugin, "__dataclass_fields__", {})}
    return sorted(name for name in wanted - attributes if not name.startswith("_"))
