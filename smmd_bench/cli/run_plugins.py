"""The plugin files that a run was made with: what reads the run needs them, too."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .voice import Voice


def load_plugins_of(runs: Iterable[Path], voice: Voice) -> None:
    """Load the plugin files that the manifests of runs name; say which are not there any more."""
    from ..errors import UserError
    from ..registry import load_plugin_file
    from ..results.files import read_json

    files: dict[str, Path] = {}
    for run in runs:
        manifest = read_json(run / "manifest.json") or {}
        for experiment in manifest.get("experiments") or ():
            files |= dict.fromkeys(experiment.get("plugins") or (), run)
    for file, run in files.items():
        try:
            load_plugin_file(Path(file))
        except UserError as error:
            voice.note(f"Note: {run} was made with a plugin that is not read: {error}")
