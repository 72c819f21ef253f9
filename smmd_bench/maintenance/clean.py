"""`smmd-bench clean`: the parts of runs and of the cache that can go. No report needs any."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..plugin_system.registry import names
from ..results.frames import read_run
from ..results.regression import compared_evaluations, comparison_folder, current_evaluations
from ..scoring.measure import COMPARISON
from ..storage.addresses import cache_folder
from ..storage.cell import FOLDERS
from ..storage.files import remove_tree

PARTS = {
    "leftovers": "damaged folders that were set aside, and what killed commands had begun to write",
    "logs": "what the worker processes printed",
    "failed": "why cells failed, with tracebacks",
    "replaced": "results of cells whose place another recipe, plugin or version has taken",
    "unfinished": "weights and states from which a stopped training goes on",
    "epochs": "the weights of every epoch, kept by keep_epochs",
    "checkpoints": "the selected weights of finished cells",
    "cache-generated": "examples and pictures that tasks have made, and canaries",
    "cache-digests": "digests of files that were read before",
    "cache-fetched": "data from the hub",
}
"""The parts by name, the cheapest to have again first in runs and in the cache."""
COSTS = {
    "leftovers": "nothing: it is never read",
    "logs": "they do not come back; training logs stay",
    "failed": "the tables call these cells pending until the command of the run tries them again",
    "replaced": "going back to that recipe trains them again",
    "unfinished": "the command of the run trains these cells from the beginning",
    "epochs": "with other validation data, or if another epoch wins, they are trained again",
    "checkpoints": "nothing that is measured; `regress`, `export`, other tests and engines need "
    "them, and the command of the run with --restore-weights trains them again",
    "cache-generated": "made again when it is needed, in seconds to minutes",
    "cache-digests": "each checkpoint is read once more, to the end",
    "cache-fetched": "fetched again when it is needed, which takes a network",
}
"""What is lost with each part, or how it comes back."""


@dataclass(frozen=True)
class Part:
    """Files and folders of one kind in one place: a run (`run` is its folder) or the cache."""

    name: str
    place: Path
    paths: tuple[Path, ...]
    run: Path | None = None

    @cached_property
    def size(self) -> int:
        """Bytes of all the files; of a link, not what it leads to."""
        return sum(map(size_of, self.paths))

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON takes it."""
        return {
            "part": self.name,
            "what": PARTS[self.name],
            "place": str(self.place),
            "paths": [str(path) for path in self.paths],
            "bytes": self.size,
            "cost": COSTS[self.name],
        }


def run_parts(path: Path) -> list[Part]:
    """The parts that a run has; raises UserError if the folder is not a run."""
    run = read_run(path)
    cells = [run.current(address) for address in run.cells["address"]]
    reached = {folder for cell in cells for folder in cell.folders}
    for pair in run.compared:
        mine, other = (run.current(cell["address"]) for cell in (pair.mine, pair.other))
        reached.add(mine.compared_with(other, COMPARISON))
    evaluations = compared_evaluations(current_evaluations(run))
    reached |= {comparison_folder(path, mine, other) for mine, other in evaluations}
    found: dict[str, list[Path]] = {name: [] for name in PARTS}
    found["logs"] = [path / "logs"]
    found["failed"] = sorted((path / "failed").glob("*.json"))
    found["leftovers"] = sorted((path / "regression").glob("*.damaged"))
    for folder in (f for stage in FOLDERS for f in sorted((path / stage).glob("*"))):
        if folder.suffix in (".part", ".damaged"):
            is_training = folder.parent.name == "train" and folder.name.count(".") == 2
            found["unfinished" if is_training else "leftovers"].append(folder)
        elif folder not in reached:
            found["replaced"].append(folder)
    if any([*(path / stage).glob("*.damaged")] for stage in ("train", "select")):
        found["replaced"] = []  # what is made again may lead to it
    trained = {one.trained: one for cell in cells for one in cell.family if "train" in one.parts}
    for folder, cell in trained.items():
        found["leftovers"] += sorted(folder.glob("epochs/.*.part"))
        for epoch in sorted(folder.glob("epochs/[0-9]*")):
            is_selected = "checkpoints" if epoch == cell.checkpoint else "epochs"
            found["unfinished" if cell.tested is None else is_selected].append(epoch)
    parts = (Part(name, path, (*filter(Path.exists, ps),), path) for name, ps in found.items())
    return [part for part in parts if part.paths]


def cache_parts() -> list[Part]:
    """The parts that the cache has: only folders that this program writes there, by name."""
    cache = cache_folder()
    found = {
        "cache-generated": [*names("tasks"), "canary"],
        "cache-digests": ["digests"],
        "cache-fetched": ["data"],
    }
    parts = [
        Part(name, cache, tuple(cache / f for f in folders if (cache / f).is_dir()))
        for name, folders in found.items()
    ]
    return [part for part in parts if part.size]


def remove(paths: Iterable[Path]) -> int:
    """Remove files, folders and links (not what they lead to); returns the bytes that went."""
    freed = 0
    for path in paths:
        if not os.path.lexists(path):
            continue
        freed += size_of(path)
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            remove_tree(path)
    return freed


def size_of(path: Path) -> int:
    """Bytes of a file, or of all the files below a folder; links count as themselves."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size if os.path.lexists(path) else 0
    return sum(size_of(below) for below in path.iterdir())
