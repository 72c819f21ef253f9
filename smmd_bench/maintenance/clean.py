"""`smmd-bench clean`: the parts of runs and of the cache that can go. No report needs any."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..plugin_system.registry import names
from ..results.frames import RunFrames, read_run
from ..results.regression import (
    compared_evaluations,
    comparison_folder,
    current_evaluations,
)
from ..scoring.measure import COMPARISON
from ..storage.addresses import cache_folder
from ..storage.cell import FOLDERS
from ..storage.files import remove_tree

PARTS = {
    "leftovers": "results that another recipe, plugin or version has replaced, damaged or "
    "unfinished folders, and what worker processes printed",
    "weights": "selected and kept weights, and states from which a stopped training goes on",
    "cache": "data from the hub, examples and pictures that tasks have made, digests of files",
}
"""The parts by name, the cheapest to have again first in runs."""
COSTS = {
    "leftovers": "going back to a recipe that was replaced trains it again; logs do not come back",
    "weights": "nothing that is measured; `regress`, `export`, other tests and engines need them, "
    "and the command of the run with --restore-weights trains them again; a stopped training "
    "starts from the beginning",
    "cache": "fetched or made again when it is needed; data from the hub take a network",
}
"""What is lost with each part, or how it comes back."""


@dataclass(frozen=True)
class Part:
    """Files and folders of one kind in one place, which is a run's folder or the cache."""

    name: str
    place: Path
    paths: tuple[Path, ...]

    @cached_property
    def size(self) -> int:
        """Bytes of all the files; of a link, not what it leads to."""
        return sum(map(count_bytes, self.paths))

    def to_dict(self) -> dict[str, Any]:
        """Describe all of it, as JSON takes it."""
        return {
            "part": self.name,
            "what": PARTS[self.name],
            "place": str(self.place),
            "paths": [str(path) for path in self.paths],
            "bytes": self.size,
            "cost": COSTS[self.name],
        }


def find_run_parts(path: Path) -> list[Part]:
    """Find the parts that a run has; raises UserError if the folder is not a run."""
    run = read_run(path)
    reached = _find_reached_folders(run)
    weights: list[Path] = []
    leftovers = [path / "logs", *sorted((path / "regression").glob("*.damaged"))]
    replaced = []
    for stage in FOLDERS:
        for folder in sorted((path / stage).glob("*")):
            # A stopped training goes on from its .KEY.part; what is being removed has a third dot.
            is_part = folder.suffix == ".part" and folder.name.count(".") == 2
            if is_part and stage == "train":
                weights.append(folder)
            elif folder.suffix in (".part", ".damaged"):
                leftovers.append(folder)
            elif folder not in reached:
                replaced.append(folder)

    # What is made again in place of damaged weights or selections may lead to other folders.
    damaged = [*path.glob("train/*.damaged"), *path.glob("select/*.damaged")]
    if not damaged:
        leftovers += replaced

    for folder in sorted(reached):
        leftovers += sorted(folder.glob("epochs/.*.part"))
        weights += sorted(folder.glob("epochs/[0-9]*"))

    parts = []
    for name, paths in (("leftovers", leftovers), ("weights", weights)):
        existing = tuple(filter(Path.exists, paths))
        if existing:
            parts.append(Part(name, path, existing))
    return parts


def _find_reached_folders(run: RunFrames) -> set[Path]:
    """Find the folders that the cells of the tables lead to."""
    reached: set[Path] = set()
    for address in run.described:
        for cell in run.current(address).family:
            reached |= {*cell.folders}

    # A comparison is reached from two cells, and from two evaluations.
    for pair in run.compared:
        cell = run.current(pair.mine["address"])
        opponent = run.current(pair.other["address"])
        reached.add(cell.compared_with(opponent, COMPARISON))

    for one, another in compared_evaluations(current_evaluations(run)):
        reached.add(comparison_folder(run.path, one, another))
    return reached


def find_cache_parts() -> list[Part]:
    """Find what the cache has: only folders that this program writes there, by name."""
    cache = cache_folder()
    folders = [cache / name for name in (*names("tasks"), "canary", "digests", "data")]
    # Another program may have put files of its own beside them.
    ours = Part("cache", cache, tuple(filter(Path.is_dir, folders)))
    return [ours] if ours.size else []


def remove(paths: Iterable[Path]) -> int:
    """Remove files, folders and links (not what they lead to); returns the bytes that went."""
    freed = 0
    for path in paths:
        freed += count_bytes(path)
        # A link is the user's: what it leads to may be shared.
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink(missing_ok=True)
    return freed


def count_bytes(path: Path) -> int:
    """Count the bytes of a file, or of all the files below a folder; links count as themselves."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size if os.path.lexists(path) else 0
    return sum(count_bytes(below) for below in path.iterdir())
