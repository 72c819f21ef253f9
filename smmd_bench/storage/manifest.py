"""The manifest of a run folder, which may come from anywhere."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .addresses import address, require_inside
from .files import read_json, read_own_json
from .shapes import require_shape

PLUGINS = "plugins"
"""The folder of a run with copies of its plugin files."""
KEPT_APART = ("select", "decode")
"""The stages in which a row and a trial with the same training must not differ."""
PLUGIN_PATHS = "plugin_paths"
"""Key: the plugin files as experiments spell them -> where they were when the run was made."""


def read_manifest(run: Path) -> dict[str, Any]:
    """What RUN/manifest.json says; empty where there is none.

    Raises UserError where it is damaged, or names a cell whose folder would be elsewhere.
    """
    content = read_json(run / "manifest.json") or {}
    require_shape(content, run / "manifest.json")
    for cell in cells_and_trials(content):
        require_inside(cell, run / "manifest.json")
    return content


def cells_and_trials(manifest: Mapping[str, Any]) -> list[str]:
    """The addresses of the trials of a run's tuned cells, and then of its cells."""
    return [*(manifest.get("trials") or ()), *(manifest.get("cells") or ())]


def is_row(cells: Path, content: Mapping[str, Any]) -> bool:
    """Whether a cell.json is that of a row of the tables, in the folder `cells` of a run.

    That of a trial is not, nor that of a tuned cell of which a trial has since been asked for with
    another validation or test: a folder cannot hold both.
    """
    trials = zip(content.get("trials") or (), content.get("trial_stages") or (), strict=False)
    for name, stages in trials:
        trial = read_own_json(cells / require_inside(name, cells) / "cell.json")
        if trial is not None and not are_alike(trial.get("addresses") or {}, stages):
            return False
    return content.get("trial") is None


def are_alike(addresses: Mapping[str, str], others: Mapping[str, str]) -> bool:
    """Whether two cells with the same training can be one: as a row and as a trial."""
    return all(addresses.get(stage) == others.get(stage) for stage in KEPT_APART)


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
