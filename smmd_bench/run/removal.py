"""`smmd-bench clean`: the parts of runs and of the cache that can go, and how they go."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..plugin_system.registry import names
from ..storage.addresses import cache_folder
from ..storage.sizes import size_of

PARTS = {
    "leftovers": "half-written files and states that nothing reads any more",
    "logs": "what the worker processes printed",
    "failed": "cells that failed, with their tracebacks and what they had trained",
    "replaced": "cells whose place another recipe or version has taken",
    "unfinished": "weights and states from which a stopped training goes on",
    "epochs": "the weights of every epoch, kept by keep_epochs",
    "checkpoints": "the selected weights of finished cells",
    "cache-generated": "examples and pictures that tasks have made, and canaries",
    "cache-digests": "digests of files that were read before",
    "cache-fetched": "data from the hub",
}
"""The parts by name, the cheapest to have again first in runs and in the cache."""


@dataclass(frozen=True)
class Part:
    """Files and folders of one kind in one place: a run (`run` is its folder) or the cache.

    cost: what is lost, or how it comes back.
    """

    name: str
    place: Path
    paths: tuple[Path, ...]
    cost: str
    run: Path | None = None

    @cached_property
    def size(self) -> int:
        """Bytes of all the files; of a link, not what it leads to."""
        return sum(size_of(path)[0] for path in self.paths)

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON takes it."""
        return {
            "part": self.name,
            "what": PARTS[self.name],
            "place": str(self.place),
            "paths": [str(path) for path in self.paths],
            "bytes": self.size,
            "cost": self.cost,
        }


def cache_parts() -> list[Part]:
    """The parts that the cache has: only folders that this program writes there, by name."""
    cache = cache_folder()
    own = (*names("tasks"), "canary")  # a plugin may call itself "..", and not be directly there
    generated = [name for name in own if name not in ("", "..") and Path(name).name == name]
    found = {
        "cache-generated": (
            generated,
            "made again when it is needed, in seconds to minutes; until then the pages of runs "
            "with pictures are made without them",
        ),
        "cache-digests": (["digests"], "each checkpoint is read once more, to the end"),
        "cache-fetched": (
            ["data"],
            "fetched again when it is needed, which takes a network",
        ),
    }
    parts = [
        Part(name, cache, tuple(cache / f for f in folders if (cache / f).is_dir()), cost)
        for name, (folders, cost) in found.items()
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
        freed += size_of(path)[0]
        if path.is_symlink() or not path.is_dir():
            path.unlink()
            continue
        going = path
        if not path.name.endswith(".part"):
            going = path.with_name(f".{path.name}.{os.getpid()}.part")
            path.rename(going)
        shutil.rmtree(going)
    return freed
