"""The manifest of a run folder, which may come from anywhere, and its copies of plugin files."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import UserError
from .addresses import address
from .files import DamagedError, read_json

FORMAT = 3
"""Of a run folder. Raise it when what is written there is read in another way."""
CONVERTER = "scripts/convert_run.py of commit c0df192"
PLUGINS = "plugins"
"""The folder of a run with copies of its plugin files."""
PLUGIN_PATHS = "plugin_paths"
"""Key: the plugin files as experiments spell them -> where they were when the run was made."""


def read_manifest(run: Path) -> dict[str, Any]:
    """What RUN/manifest.json says; empty where there is none.

    Raises UserError where it is damaged, or in the format of another version of this package.
    """
    file = run / "manifest.json"
    content = read_json(file) or {}
    if "cells" in content and content.get("format") != FORMAT:
        raise UserError(
            f"{run} is in the format {content.get('format')} of another version of smmd-bench, "
            f"and this one reads {FORMAT}: convert it with {CONVERTER}."
        )
    cells = content.get("cells", [])
    if not all(isinstance(c, dict) and {"address", "parts"} <= c.keys() for c in cells):
        raise DamagedError(file, "not the manifest of a run", "copy it again")
    return content


def plugin_files_of(run: Path, manifest: Mapping[str, Any]) -> dict[str, Path]:
    """The plugin files of a run, by the spelling of its experiments: where each was when the run
    was made, else the copy in the folder, else what the spelling names here and now."""
    paths = manifest.get(PLUGIN_PATHS) or {}
    experiments = manifest.get("experiments") or ()
    spelled = dict.fromkeys(str(f) for e in experiments for f in e.get("plugins") or ())

    def places(file: str) -> Iterator[Path]:
        yield from (Path(paths[file]),) if file in paths else ()
        yield kept_plugin(run, file)

    return {file: next(filter(Path.is_file, places(file)), Path(file)) for file in spelled}


def kept_plugin(run: Path, file: str) -> Path:
    """Where a run keeps its copy of a plugin file, by the spelling of its experiments."""
    return run / PLUGINS / address({"file": file}) / Path(file).name
