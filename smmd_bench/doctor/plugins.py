"""Whether every plugin can be imported: in the child, where one that crashes breaks nothing."""

from __future__ import annotations

from ..registry import plugin_files, singular
from .child import Said
from .finding import Finding

_CODE = """
from pathlib import Path
from smmd_bench.registry import GROUPS, entries, load_plugin_file
for file in {files!r}:
    load_plugin_file(Path(file))
for group in GROUPS:
    said = [[entry.name, entry.origin, entry.error] for entry in entries(group)]
    say(**{{"plugins_" + group: said}})
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
        text = f"not all of them could be imported: {said.failure}"
        remedy = "`smmd-bench ls` shows which comes last; uninstall that one"
        return [*broken, Finding("plugins", "note" if said.late else "problem", text, remedy)]
    return [Finding("plugins", "ok", f"{len(known) - len(broken)} can be used"), *broken]
