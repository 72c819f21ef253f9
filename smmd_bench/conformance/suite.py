"""Which plugins are meant, and all checks of one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import UserError, did_you_mean
from ..plugin_system.parameters import parameters_of, split_spec
from ..plugin_system.registry import (
    GROUPS,
    Group,
    load,
    load_plugin_file,
    names,
    plugins_of_file,
    singular,
)
from .checks import Finding, ViolationError, require, run_checks
from .losses import LOSS_CHECKS
from .reports import REPORT_CHECKS
from .tasks import task_findings

Target = tuple[Group, str]
"""A plugin to check: its group, and how it is spelled, such as `huber[delta=2]`."""


def targets(words: Sequence[str]) -> list[Target]:
    """Plugins by name or spec, groups, and files that define some; all without words."""
    found: list[Target] = []
    for word in words or GROUPS:
        if word in GROUPS:
            found += [(word, name) for name in names(word)]
        elif word.endswith(".py") or "/" in word.partition("[")[0]:
            load_plugin_file(word)
            found += plugins_of_file(Path(word))
        else:
            found += _named(word)
    return list(dict.fromkeys(found))


def findings(target: Target, own_run: Path | None = None) -> list[Finding]:
    """What came of every check of a plugin; reports are tried on a run of one's own, too."""
    group, spec = target
    found = run_checks({"plugin": _usable}, group, spec)
    if found[0].state == "failed":
        return found
    plugin = load(group, spec)
    if group == "tasks":
        return [*found, *task_findings(plugin)]
    if group == "losses":
        return [*found, *run_checks(LOSS_CHECKS, plugin)]
    if group == "reports":
        return [*found, *run_checks(REPORT_CHECKS, plugin, own_run)]
    return [*found, Finding("behaviour", "unchecked", "try it in `smmd-bench train-eval`")]


def violations(name: str) -> list[str]:
    """What the checks of every plugin of that name, spec or file find wrong; `[]` is expected."""
    return [
        f"{singular(group)} {spec}: {finding.check}: {finding.detail}"
        for group, spec in targets([name])
        for finding in findings((group, spec))
        if finding.state == "failed"
    ]


def _usable(group: Group, spec: str) -> None:
    """It can be made from its spelling, and says what it is."""
    name, _ = split_spec(spec)
    try:
        plugin = load(group, spec)
    except UserError as error:
        raise ViolationError(str(error)) from error
    cls: Any = type(plugin)
    require(plugin.name == name, f"it is registered as {name}, and its name is {plugin.name}")
    version = getattr(plugin, "version", 1)
    require(type(version) is int and version > 0, f"version is {version!r}, not an integer > 0")
    frozen = cls.__dataclass_params__.frozen
    require(frozen, "it can be changed: put @dataclass(frozen=True) on the class")
    silent = [p.name for p in parameters_of(cls).values() if not p.help]
    require(not silent, f"the parameter {', '.join(silent)} has no help: use parameter()")


def _named(word: str) -> list[Target]:
    name, _ = split_spec(word)
    found = [(group, word) for group in GROUPS if name in names(group)]
    if not found:
        known = did_you_mean(name, [*GROUPS, *(n for group in GROUPS for n in names(group))])
        raise UserError(
            f"Unknown plugin '{name}' (a file's path is as ./my_task.py; a new entry point needs "
            f"`pip install -e .`): {known}"
        )
    for group, spec in found if "[" in word else ():
        load(group, spec)  # a bad parameter is the user's mistake, not the plugin's
    return found
