"""Whether every plugin can be imported: in the child, where one that crashes breaks nothing."""

from __future__ import annotations

from ...plugin_system.registry import plugin_files, singular
from .child import Said
from .finding import LONGER, Finding

_CODE = """
from pathlib import Path
from smmd_bench.plugin_system.registry import (
    GROUPS, entry, load_plugin_file, names, points, singular
)
for file in {files!r}:
    say(loading=["the plugin file " + file, "mend " + file + ", or leave it out"])
    load_plugin_file(Path(file))
for group in GROUPS:
    rows = []
    for name in names(group):
        point = points(group).get(name)
        origin = point.dist.name if point and point.dist else "a file"
        own = "the " + singular(group) + " '" + name + "' of " + origin
        say(loading=[own, "mend or uninstall " + origin])
        found = entry(group, name)
        rows.append([name, found.origin, found.error])
    say(**{{"plugins_" + group: rows}})
"""
_GROUP = "plugins_"


def plugins_code() -> str:
    """The step that imports all plugins, with the files given by `--plugin`."""
    return _CODE.format(files=[str(file) for file in plugin_files()])


def plugin_findings(said: Said) -> list[Finding]:
    """How many plugins can be used; each one that fails to import, with its error."""
    groups = {key: value for key, value in said.facts.items() if key.startswith(_GROUP)}
    known = [(key.removeprefix(_GROUP), *row) for key, rows in groups.items() for row in rows]
    broken = [
        Finding(
            "plugins",
            "problem",
            f"the {singular(group)} '{name}' of {origin} cannot be used: {error}",
            f"mend or uninstall {origin}; the others are not touched by it",
        )
        for group, name, origin, error in known
        if error is not None
    ]
    if said.failure is not None:
        return [*broken, _unfinished(said)]
    return [Finding("plugins", "ok", f"{len(known) - len(broken)} can be used"), *broken]


def _unfinished(said: Said) -> Finding:
    """Which plugin the child was importing when it died, or when its time was over."""
    name, remedy = said.facts.get("loading", ("", "install smmd-bench again"))
    last = f", the last of them {name}" if name else ""
    text = f"not all of them could be imported{last}: {said.failure}"
    if said.late:
        return Finding("plugins", "note", text, LONGER)
    return Finding("plugins", "problem", text, remedy)
