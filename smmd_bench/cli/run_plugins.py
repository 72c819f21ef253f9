"""The plugin files that a run was made with: what reads the run needs them, too."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .voice import Voice


def load_plugins_of(runs: Iterable[Path], voice: Voice) -> None:
    """Load the plugin files that the manifests of runs name.

    Notes say which files cannot be loaded, and which plugins have changed since the run.
    """
    from ..errors import UserError
    from ..plugin_system.consent import load_of_run
    from ..storage.manifest import plugin_files_of, read_manifest

    manifests = {run: read_manifest(run) for run in runs}
    files = {
        file: run
        for run, manifest in manifests.items()
        for file in plugin_files_of(run, manifest).values()
    }
    for file, run in files.items():
        try:
            load_of_run(file)
        except UserError as error:
            voice.note(f"Note: {run} was made with a plugin that could not be loaded: {error}")
    for run, manifest in manifests.items():
        if changed := _find_changed(manifest):
            voice.note(
                f"Note: the source of the {' and the '.join(changed)} has changed since {run} was "
                "made. Its results are of the earlier source: the command that made the run makes "
                "them again."
            )


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
