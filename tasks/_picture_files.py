"""Files of pictures: drawn in the cache folder, and the digest of those that a folder holds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joblib import Parallel, cpu_count, delayed

from smmd_bench.contracts import cache_folder
from smmd_bench.storage.addresses import address
from smmd_bench.storage.files import read_json, write_json

if TYPE_CHECKING:
    from PIL import Image

IN_PROCESS_BELOW = 200
"""Starting processes costs more than drawing so many pictures."""


def draw_all(draw: Callable[..., None], items: Sequence[tuple[Any, ...]], pictures: int) -> None:
    """Call `draw` with the arguments of every item, on all cores if there are many pictures."""
    processes = 1 if pictures < IN_PROCESS_BELOW else cpu_count()
    Parallel(processes)(delayed(draw)(*item) for item in items)


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


def kept_digest(root: Path, files: Sequence[Path], content: Callable[[Path], bytes]) -> str:
    """A digest of the `content` of a folder's files, kept until a size or time changes."""
    stamps = [(str(p.resolve()), (s := p.stat()).st_size, s.st_mtime_ns) for p in files]
    kept = cache_folder() / "digests" / f"images-{address({'root': str(root), 'of': stamps})}.json"
    known = read_json(kept)
    if known is None:
        digest = hashlib.blake2b(digest_size=16)
        for file in files:
            digest.update(content(file))
        known = {"digest": digest.hexdigest()}
        write_json(kept, known)
    return str(known["digest"])
