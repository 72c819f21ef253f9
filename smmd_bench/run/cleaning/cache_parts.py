"""What of the cache folder can go: only what this program writes there, by name."""

from __future__ import annotations

from pathlib import Path

from ...plugin_system.registry import names
from ...storage.addresses import cache_folder
from .part import Part

_CANARIES = "canary"


def cache_parts() -> list[Part]:
    """The parts that the cache has: data that tasks made, digests, data that was fetched."""
    cache = cache_folder()
    made = [cache / name for name in (*names("tasks"), _CANARIES)]
    found = [
        (
            "cache-generated", made,
            "made again when it is needed, in seconds to minutes; until then the pages of runs "
            "with pictures are made without them",
        ),
        ("cache-digests", [cache / "digests"], "each checkpoint is read once more, to the end"),
        (
            "cache-fetched", [cache / "data"],
            "fetched again when it is needed, which takes a network",
        ),
    ]  # fmt: skip
    parts = []
    for name, paths, cost in found:
        there = tuple(path for path in paths if path.is_dir() and _is_own(cache, path))
        part = Part(name, cache, there, cost)
        if part.size:
            parts.append(part)
    return parts


def _is_own(cache: Path, path: Path) -> bool:
    """Whether a folder is directly in the cache, whatever a plugin calls itself."""
    return path.parent == cache and path.name not in ("", ".", "..")
