"""Which plugins are meant, and all that is checked of one."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..contracts import Engine, Executor
from ..errors import UserError, did_you_mean
from ..plugin_system.parameters import canonical, parameters_of, split_spec
from ..plugin_system.registry import GROUPS, Group, entries, load, load_plugin_file, names, singular
from .checks import Finding, ViolationError, checked, require
from .generated_runs import GeneratedRuns

_PROTOCOLS = {"engines": Engine, "executors": Executor}


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
    """Plugins by name or spec, groups, and the files that define some; without words, all.

    Raises UserError for a word that is none of these.
    """
    if not words:
        return [Target(group, name) for group in GROUPS for name in names(group)]
    found: list[Target] = []
    for word in words:
        if word in GROUPS:
            found += [Target(word, name) for name in names(word)]
        elif word.endswith(".py") or "/" in word.partition("[")[0]:
            found += _of_file(Path(word))
        else:
            found += _named(word)
    return list(dict.fromkeys(found))


def findings(target: Target, runs: GeneratedRuns, *, timed: bool = True) -> list[Finding]:
    """What came of every check of a plugin; without `timed`, the cost of a loss is left out."""
    first = checked("plugin", lambda: _usable(target))
    if first.state == "failed":
        return [first]
    plugin = load(target.group, target.spec)
    if target.group == "tasks":
        from .tasks import task_findings

        return [first, *task_findings(plugin)]
    if target.group == "losses":
        from .losses import loss_findings

        return [first, *loss_findings(plugin, timed=timed)]
    if target.group == "reports":
        from .reports import report_findings

        return [first, *report_findings(plugin, runs)]
    return [first, checked("contract", lambda: _protocol(target, plugin)), _untried(target)]


def violations(name: str) -> list[str]:
    """What the checks of every plugin of that name, spec or file find wrong: `[]` is wished for."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="smmd-bench-") as folder:
        runs = GeneratedRuns(Path(folder))
        return [
            f"{target.label}: {finding.check}: {finding.detail}"
            for target in targets([name])
            for finding in findings(target, runs, timed=False)
            if finding.state == "failed"
        ]


def _usable(target: Target) -> str:
    """It can be imported and made from its spelling, and says what it is."""
    name, _ = split_spec(target.spec)
    try:
        plugin = load(target.group, target.spec)
    except UserError as error:
        raise ViolationError(str(error)) from error
    cls: Any = type(plugin)
    require(plugin.name == name, f"it is registered as {name}, and its name is {plugin.name}")
    if target.group != "executors" and target.group != "reports":
        version = plugin.version
        require(type(version) is int and version > 0, f"version is {version!r}, no integer > 0")
    parameters = cls.__dataclass_params__
    require(parameters.frozen, "it can be changed: put @dataclass(frozen=True) on the class")
    text = (cls.__doc__ or "").strip()
    generated = text.startswith(f"{cls.__name__}(") and text.endswith(")")
    require(bool(text) and not generated, "it has no docstring, whose first line `ls` shows")
    silent = [p.name for p in parameters_of(cls).values() if not p.help]
    require(not silent, f"the parameter {', '.join(silent)} has no help: use parameter()")
    again = load(target.group, canonical(plugin))
    require(again == plugin, f"its spelling {canonical(plugin)} gives another plugin")
    count = len([f for f in dataclasses.fields(cls) if f.init])
    module = cls.__module__
    origin = Path(inspect.getfile(cls)).name if "_plugin_" in module else module
    return f"{cls.__qualname__} of {origin}, {count} parameter{'s' * (count != 1)}"


def _protocol(target: Target, plugin: Any) -> str:
    kind = singular(target.group).capitalize()
    holds = isinstance(plugin, _PROTOCOLS[target.group])
    require(holds, f"it lacks an attribute or method of {kind}")
    return f"it has what {kind} asks for"


def _untried(target: Target) -> Finding:
    what = "a checkpoint to decode with" if target.group == "engines" else "jobs to run"
    return Finding(
        "behaviour", "unchecked", f"that needs {what}: try it in `smmd-bench train-eval`"
    )


def _of_file(path: Path) -> list[Target]:
    before = {group: names(group) for group in GROUPS}
    load_plugin_file(path)
    new = [Target(g, name) for g in GROUPS for name in names(g) if name not in before[g]]
    if new:
        return new
    origin = str(path.resolve())  # loaded before, or under names that there are already
    return [Target(g, e.name) for g in GROUPS for e in entries(g) if e.origin == origin]


def _named(word: str) -> list[Target]:
    name, _ = split_spec(word)
    found = [Target(group, word) for group in GROUPS if name in names(group)]
    if not found:
        known = [*GROUPS, *(name for group in GROUPS for name in names(group))]
        raise UserError(
            f"Unknown plugin '{name}': {did_you_mean(name, known)} A file is named by its path, "
            "such as ./my_task.py."
        )
    if "[" in word:
        for target in found:
            load(target.group, word)  # a bad parameter is the user's mistake, not the plugin's
    return found
