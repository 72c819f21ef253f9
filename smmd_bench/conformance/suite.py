"""Which plugins are meant, and all checks of one."""

from collections.abc import Sequence
from itertools import chain
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
from .tasks import check_task

Target = tuple[Group, str]
"""A plugin to check: its group, and how it is spelled, such as `huber[delta=2]`."""


def targets(words: Sequence[str]) -> list[Target]:
    """Find plugins by name or spec, by group, and by file; all of them without words."""
    plugins: list[Target] = []
    for word in words or GROUPS:
        # A parameter may hold a slash, such as a path; a name never does.
        before_parameters = word.partition("[")[0]
        is_file = word.endswith(".py") or "/" in before_parameters
        if word in GROUPS:
            plugins += [(word, name) for name in names(word)]
        elif is_file:
            load_plugin_file(word)
            plugins += plugins_of_file(Path(word))
        else:
            plugins += _find_by_spec(word)
    return list(dict.fromkeys(plugins))


def findings(target: Target, own_run: Path | None = None) -> list[Finding]:
    """Run every check of a plugin; reports are tried on a run of one's own, too."""
    group, spec = target
    # A plugin that cannot be made has nothing to try.
    usable = run_checks({"plugin": _check_usable}, group, spec)
    if usable[0].state == "failed":
        return usable

    plugin = load(group, spec)
    if group == "tasks":
        behaviour = check_task(plugin)
    elif group == "losses":
        behaviour = run_checks(LOSS_CHECKS, plugin)
    elif group == "reports":
        behaviour = run_checks(REPORT_CHECKS, plugin, own_run)
    else:
        # What an engine or an executor does shows in a run alone.
        advice = "try it in `smmd-bench train-eval`"
        behaviour = [Finding("behaviour", "unchecked", advice)]
    return [*usable, *behaviour]


def violations(name: str) -> list[str]:
    """What the checks of every plugin of that name, spec or file find wrong; `[]` is expected."""
    sentences = []
    for group, spec in targets([name]):
        for finding in findings((group, spec)):
            if finding.state == "failed":
                check = f"{finding.check}: {finding.detail}"
                sentences.append(f"{singular(group)} {spec}: {check}")
    return sentences


def _check_usable(group: Group, spec: str) -> None:
    """It can be made from its spelling, and says what it is."""
    name, _ = split_spec(spec)
    try:
        plugin = load(group, spec)
    except UserError as error:
        raise ViolationError(str(error)) from error

    require(
        plugin.name == name,
        f"it is registered as {name}, and its name is {plugin.name}",
    )
    # Reports and executors need none.
    version = getattr(plugin, "version", 1)
    require(
        type(version) is int and version > 0,
        f"version is {version!r}, not an integer > 0",
    )

    # A plugin is a part of addresses: it may not change once they are computed.
    cls: Any = type(plugin)
    require(
        cls.__dataclass_params__.frozen,
        "it can be changed: put @dataclass(frozen=True) on the class",
    )
    # The help is all that `smmd-bench ls -v` can say of what a parameter does.
    silent = [
        parameter.name
        for parameter in parameters_of(cls).values()
        if not parameter.help
    ]
    require(
        not silent, f"the parameter {', '.join(silent)} has no help: use parameter()"
    )


def _find_by_spec(word: str) -> list[Target]:
    name, _ = split_spec(word)
    matching: list[Target] = [(group, word) for group in GROUPS if name in names(group)]
    if not matching:
        every = chain(GROUPS, *map(names, GROUPS))
        hint = did_you_mean(name, [*every])
        raise UserError(
            f"Unknown plugin '{name}' (a file's path is as ./my_task.py; a new entry point needs "
            f"`pip install -e .`): {hint}"
        )

    # A bad parameter is the user's mistake, not the plugin's.
    if "[" in word:
        for group, spec in matching:
            load(group, spec)
    return matching
