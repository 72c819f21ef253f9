"""`smmd-bench clean`: the parts of runs and of the cache that can go, and how they go.

Reports and `smmd-bench show` need none of the parts. What the run's own command does once a part
is gone follows from `RunDirectory.missing`.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..plugin_system.registry import names
from ..results.frames import read_run
from ..results.regression import compared_evaluations, comparison_folder, current_evaluations
from ..storage.addresses import cache_folder
from ..storage.cell import STAGES, StoredCell
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
    "replaced": "to go back to their recipe is to train them again",
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
    reached |= {
        run.current(pair.mine["address"]).compared_with(run.current(pair.other["address"]))
        for pair in run.compared
    }
    evaluations = compared_evaluations(current_evaluations(run))
    reached |= {comparison_folder(path, mine, other) for mine, other in evaluations}
    there = [folder for stage in STAGES for folder in sorted((path / stage).glob("[!.]*"))]
    damaged = [folder for folder in there if folder.suffix == ".damaged"]
    weights = {cell.trained: cell for cell in _with_trials(cells) if "train" in cell.parts}
    kept = {folder: sorted(folder.glob("epochs/[0-9]*")) for folder in weights}
    selected = [c.checkpoint for c in weights.values() if c.checkpoint is not None]
    begun = [folder for stage in STAGES for folder in sorted((path / stage).glob(".*.part"))]
    begun += sorted(path.glob("train/[!.]*/epochs/.*.part"))
    trainings = [f for f in begun if f.parent.name == "train" and f.name.count(".") == 2]
    found: dict[str, Iterable[Path]] = {
        "leftovers": [*damaged, *(f for f in begun if f not in trainings)],
        "logs": [path / "logs"],
        "failed": sorted((path / "failed").glob("*.json")),
        "replaced": [f for f in there if f not in reached and f not in damaged],
        "unfinished": [
            *trainings,
            *(e for f, cell in weights.items() if cell.tested is None for e in kept[f]),
        ],
        "epochs": [
            epoch
            for folder, cell in weights.items()
            if cell.tested is not None
            for epoch in kept[folder]
            if epoch != cell.checkpoint
        ],
        "checkpoints": selected,
    }
    parts = [
        Part(name, path, tuple(p for p in ps if p.exists()), path) for name, ps in found.items()
    ]
    return [part for part in parts if part.paths]


def _with_trials(cells: Iterable[StoredCell]) -> list[StoredCell]:
    """The cells, those whose weights they test, and their trials."""
    found = []
    for cell in cells:
        found += [cell, *_with_trials(cell.trials)]
        found += [] if cell.source is None else _with_trials([cell.source])
    return found


def cache_parts() -> list[Part]:
    """The parts that the cache has: only folders that this program writes there, by name."""
    cache = cache_folder()
    own = (*names("tasks"), "canary")  # a plugin may call itself "..", and not be directly there
    generated = [name for name in own if name not in ("", "..") and Path(name).name == name]
    found = {
        "cache-generated": generated,
        "cache-digests": ["digests"],
        "cache-fetched": ["data"],
    }
    parts = [
        Part(name, cache, tuple(cache / f for f in folders if (cache / f).is_dir()))
        for name, folders in found.items()
    ]
    return [part for part in parts if part.size]


def remove(paths: Iterable[Path]) -> int:
    """Remove files, folders and links (not what they lead to); returns the bytes that went.

    A folder is renamed first: killed in between, it is a leftover and not half a checkpoint.
    """
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
