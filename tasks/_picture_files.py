"""Files of pictures: drawn in the cache folder, and the digest of those that a folder holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smmd_bench.contracts import cache_folder
from smmd_bench.storage.addresses import address
from smmd_bench.storage.files import read_json, write_json

from ._process_pool import map_in_order

if TYPE_CHECKING:
    from PIL import Image

IN_PROCESS_BELOW = 200
"""Starting processes costs more than drawing so many pictures."""


def draw_all(
    draw: Callable[[Any], None], items: Sequence[Any], pictures: int, chunk: int = 1
) -> None:
    """Call `draw`, a function of a module, with every item, on all cores if `pictures` is large.

    chunk: items that a process takes at a time.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    processes = 1 if pictures < IN_PROCESS_BELOW else cores or 1
    for _ in map_in_order(draw, items, processes=processes, chunk=chunk):
        pass


def is_drawn(path: Path) -> bool:
    """Whether a picture is there. A machine that died may have left an empty one."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def save_png(picture: Image.Image, path: Path, compress_level: int) -> None:
    """Write a picture whose file is whole or absent, also with several processes at work."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        picture.save(part, "png", compress_level=compress_level)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def kept_digest(root: Path, files: Sequence[Path], compute: Callable[[], str]) -> str:
    """The digest that `compute` gives of a folder's files, kept until a size or time changes."""
    stamps = [(str(p.resolve()), (s := p.stat()).st_size, s.st_mtime_ns) for p in files]
    key = address({"root": str(root.resolve()), "files": stamps})
    kept = cache_folder() / "digests" / f"images-{key}.json"
    known = read_json(kept)
    if known is None:
        known = {"digest": compute()}
        write_json(kept, known)
    return str(known["digest"])
