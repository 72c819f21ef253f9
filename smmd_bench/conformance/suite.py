"""Which plugins are meant, and all checks of one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..contracts import Engine, Executor
from ..errors import UserError, did_you_mean
from ..plugin_system.parameters import canonical, parameters_of, split_spec
from ..plugin_system.registry import GROUPS, Group, entries, load, load_plugin_file, names, singular
from .checks import Finding, fail, require, run_checks
from .reports import REPORT_CHECKS, Specimen, Tried

_PROTOCOLS: dict[str, type] = {"engines": Engine, "executors": Executor}


@dataclass(frozen=True, slots=True)
class Target:
    """A plugin to check, as it is spelled: `huber[delta=2]`."""

    group: Group
    spec: str

    @property
    def label(self) -> str:
        """`loss huber[delta=2]`."""
        return f"{singular(self.group)} {self.spec}"


def targets(words: Sequence[str]) -> list[Target]:
    """Plugins by name or spec, groups, and files that define some; all without words."""
    found: list[Target] = []
    for word in words or GROUPS:
        if word in GROUPS:
            found += [Target(word, name) for name in names(word)]
        elif word.endswith(".py") or "/" in word.partition("[")[0]:
            found += _of_file(Path(word))
        else:
            found += _named(word)
    return list(dict.fromkeys(found))


def findings(target: Target, runs: Specimen) -> list[Finding]:
    """What came of every check of a plugin."""
    found = run_checks({"plugin": _usable}, target)
    if found[0].state == "failed":
        return found
    plugin = load(target.group, target.spec)
    if target.group == "tasks":
        from .tasks import task_findings

        return [*found, *task_findings(plugin)]
    if target.group == "losses":
        from .losses import LOSS_CHECKS

        return [*found, *run_checks(LOSS_CHECKS, plugin)]
    if target.group == "reports":
        return [*found, *run_checks(REPORT_CHECKS, Tried(plugin, runs))]
    return [*found, Finding("behaviour", "unchecked", "try it in `smmd-bench train-eval`")]


def violations(name: str) -> list[str]:
    """What the checks of every plugin of that name, spec or file find wrong; `[]` is expected."""
    with TemporaryDirectory(prefix="smmd-bench-") as folder:
        runs = Specimen(Path(folder))
        return [
            f"{target.label}: {finding.check}: {finding.detail}"
            for target in targets([name])
            for finding in findings(target, runs)
            if finding.state == "failed"
        ]


def _usable(target: Target) -> None:
    """It can be made from its spelling, and says what it is."""
    name, _ = split_spec(target.spec)
    try:
        plugin = load(target.group, target.spec)
    except UserError as error:
        fail(str(error))
    cls: Any = type(plugin)
    protocol = _PROTOCOLS.get(target.group, object)
    require(isinstance(plugin, protocol), f"it lacks an attribute or method of {protocol.__name__}")
    require(plugin.name == name, f"it is registered as {name}, and its name is {plugin.name}")
    if target.group not in ("executors", "reports"):
        version = plugin.version
        require(type(version) is int and version > 0, f"version is {version!r}, not an integer > 0")
    frozen = cls.__dataclass_params__.frozen
    require(frozen, "it can be changed: put @dataclass(frozen=True) on the class")
    text = (cls.__doc__ or "").strip()
    generated = text.startswith(f"{cls.__name__}(") and text.endswith(")")
    require(bool(text) and not generated, "it has no docstring, whose first line `ls` shows")
    silent = [p.name for p in parameters_of(cls).values() if not p.help]
    require(not silent, f"the parameter {', '.join(silent)} has no help: use parameter()")
    again = load(target.group, canonical(plugin))
    require(again == plugin, f"its spelling {canonical(plugin)} gives another plugin")


def _of_file(path: Path) -> list[Target]:
    before = {group: names(group) for group in GROUPS}
    load_plugin_file(path)
    new = [Target(g, name) for g in GROUPS for name in names(g) if name not in before[g]]
    if new:
        return new
    origin = str(path.resolve())  # loaded before, or under names that exist already
    return [Target(g, e.name) for g in GROUPS for e in entries(g) if e.origin == origin]


def _named(word: str) -> list[Target]:
    name, _ = split_spec(word)
    found = [Target(group, word) for group in GROUPS if name in names(group)]
    if not found:
        known = did_you_mean(name, [*GROUPS, *(n for group in GROUPS for n in names(group))])
        raise UserError(
            f"Unknown plugin '{name}' (a file's path is as ./my_task.py; a new entry point needs "
            f"`pip install -e .`): {known}"
        )
    if "[" in word:
        for target in found:
            load(target.group, word)  # a bad parameter is the user's mistake, not the plugin's
    return found
