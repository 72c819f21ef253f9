"""Keep tests/data/plugin_sources.json: versions and source of every first-party plugin, and of the
code of training.

    python scripts/record_plugin_sources.py            record plugins whose version was raised
    python scripts/record_plugin_sources.py --check    fail where the record is out of date
    python scripts/record_plugin_sources.py --unchanged tasks/gsm8k --why "a helper is renamed"

A first-party plugin is addressed by its versions and not by its source. So a change that can alter
a result raises one of them, and any other change is declared here, with its reason. The source is
that of the plugin and of the modules of `tasks/` and `plugins/` that it imports, by the rule of
`smmd_bench.plugin_system.module_source`: comments, docstrings and formatting do not count.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from smmd_bench.models.recipe import TRAINING_VERSION
from smmd_bench.plugin_system.module_source import Belongs, module_digests
from smmd_bench.plugin_system.registry import Group, points
from smmd_bench.storage.addresses import address

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "tests" / "data" / "plugin_sources.json"
GROUPS: tuple[Group, ...] = ("losses", "tasks", "engines")
PLUGIN_ROOTS = ("smmd_bench.plugins.", "smmd_bench.tasks.")
TRAINING = (
    "smmd_bench.training.",
    "smmd_bench.objective.",
    "smmd_bench.encoding.",
    "smmd_bench.contracts.",
    "smmd_bench.models.loading",
    "smmd_bench.models.processor",
)
"""The code by which a cell is trained, whose version is `TRAINING_VERSION`."""
CONSTANTS = ("FORMAT", "GENERATOR", "DRAWING", "VERSION")
"""Constants of modules that are versions, and a part of addresses through `identity()`."""

Sources = Mapping[str, Mapping[str, Any]]
"""`losses/smmd` -> {"versions": {where: number}, "digest": text}."""


def plugin_sources() -> Sources:
    """Every first-party loss, task and engine, and the code of training, as they are now."""
    stage = "smmd_bench.training.stage"
    digests = module_digests(stage, ROOT / "smmd_bench/training/stage.py", _is_of(TRAINING))
    versions = {"recipe.TRAINING_VERSION": TRAINING_VERSION}
    plugins = {
        f"{group}/{name}": _source(point.module)
        for group in GROUPS
        for name, point in sorted(points(group).items())
        if point.module.startswith(PLUGIN_ROOTS)
    }
    return {"code/training": {"versions": versions, "digest": address(digests)}, **plugins}


def complaints(recorded: Sources, now: Sources) -> list[str]:
    """A sentence for each plugin whose record is out of date: what to do."""
    said = []
    for name in [*now, *(name for name in recorded if name not in now)]:
        if name in now and name in recorded and _is_undeclared(recorded[name], now[name]):
            versions = ", ".join(f"{at} = {value}" for at, value in now[name]["versions"].items())
            said.append(
                f"The source of {name} has changed, and none of its versions ({versions}) was "
                "raised. If a result can change, raise the version of what changed and run "
                "python scripts/record_plugin_sources.py. If none can, run it with "
                f'--unchanged {name} --why "REASON".'
            )
        elif now.get(name) != recorded.get(name):
            said.append(
                f"{name} is not recorded as it is now: run python scripts/record_plugin_sources.py"
            )
    return said


def read_record() -> dict[str, Any]:
    """The content of the record; an empty one where there is none."""
    if not TARGET.exists():
        return {"plugins": {}, "unchanged": []}
    content: dict[str, Any] = json.loads(TARGET.read_text(encoding="utf-8"))
    return content


def updated(record: dict[str, Any], now: Sources, declared: list[str], why: str) -> dict[str, Any]:
    """The record of `now`, in which the `declared` plugins ("all": every one) change no result.

    Exits with what to do where another plugin has changed without a version.
    """
    known: Sources = record["plugins"]
    silent = [name for name in now if name in known and _is_undeclared(known[name], now[name])]
    declared = silent if declared == ["all"] else declared
    if wrong := [name for name in declared if name not in silent]:
        sys.exit(f"{wrong[0]} has not changed without a version: leave it out of --unchanged.")
    if left := {name: now[name] for name in silent if name not in declared}:
        sys.exit("\n".join(complaints({name: known[name] for name in left}, left)))
    entry = {"date": str(datetime.now(UTC).date()), "plugins": declared, "why": why}
    return {"plugins": now, "unchanged": [*record["unchanged"], *([entry] if declared else [])]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--unchanged", default="", metavar="NAME,...|all")
    parser.add_argument("--why", default="")
    options = parser.parse_args()
    record, now = read_record(), plugin_sources()
    if options.check:
        sys.exit("\n".join(complaints(record["plugins"], now)) or 0)
    if bool(options.unchanged) != bool(options.why.strip()):
        sys.exit("--unchanged and --why go together: say why no result can change.")
    declared = list(filter(None, options.unchanged.split(",")))
    content = json.dumps(updated(record, now, declared, options.why), indent=1)
    TARGET.write_text(f"{content}\n", encoding="utf-8")


def _is_of(roots: tuple[str, ...]) -> Belongs:
    return lambda name, _: name.startswith(roots)


def _source(module: str) -> dict[str, Any]:
    digests = module_digests(module, _file(module), _is_of(PLUGIN_ROOTS))
    versions: dict[str, int] = {}
    for name in sorted(digests):
        versions |= _versions(name.rpartition(".")[2], _file(name))
    return {"versions": versions, "digest": address(digests)}


def _file(module: str) -> Path:
    place = ROOT.joinpath(*module.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _versions(module: str, file: Path) -> dict[str, int]:
    """The numbers of a module that are versions: `version` of classes, and `CONSTANTS`."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    found = {f"{module}.{name}": value for name, value in _numbers(body) if name in CONSTANTS}
    for node in body:
        if isinstance(node, ast.ClassDef):
            numbers = dict(_numbers(node.body))
            found |= {f"{module}.{node.name}.{k}": v for k, v in numbers.items() if k == "version"}
    return found


def _numbers(body: list[ast.stmt]) -> Iterator[tuple[str, int]]:
    """The integers that statements give to a name."""
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and isinstance(node.value.value, int):
                yield target.id, node.value.value


def _is_undeclared(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the source is another, and no version is higher than before, or one is lower."""
    if before["digest"] == now["digest"]:
        return False
    old, new = before["versions"], now["versions"]
    steps = [new[where] - old[where] for where in old if where in new]
    return max(steps, default=0) <= 0 or min(steps) < 0


if __name__ == "__main__":
    main()
