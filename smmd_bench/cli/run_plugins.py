"""The plugin files that a run was made with: what reads the run needs them, too."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .voice import Voice


def load_plugins_of(runs: Iterable[Path], voice: Voice) -> None:
    """Load the plugin files that the manifests of runs name.

    Notes say which files cannot be loaded, and which plugins have changed since the run.
    """
    return


def _find_changed(manifest: dict[str, Any]) -> list[str]:
    """The plugins that are not first-party and whose source is no longer that of every cell."""
    from ..plugin_system.plugin_source import source_digest
    from ..plugin_system.registry import GROUPS, entry, names, singular

    groups = {singular(group): group for group in GROUPS}
    changed = []
    for title, digests in (manifest.get("plugins") or {}).items():
        kind, _, name = title.partition(" ")
        if name in names(groups[kind]):
            plugin = entry(groups[kind], name).plugin
            if plugin is not None and [source_digest(plugin)] != digests:
                changed.append(title)
    return changed
