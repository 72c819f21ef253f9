"""How large files and folders are, and how people read sizes and durations."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path


def spell_bytes(count: float) -> str:
    """`1536` -> "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def size_of(path: Path, seconds: float = math.inf) -> tuple[int, bool]:
    """Bytes of a file, or of all the files below a folder, and whether that is all of them.

    Links count as themselves. After so many `seconds` no further folder is looked into.
    """
    if path.is_symlink() or not path.is_dir():
        return (path.lstat().st_size if os.path.lexists(path) else 0), True
    total, until = 0, time.monotonic() + seconds
    for folder, names, files in os.walk(path):
        links = [name for name in names if (Path(folder) / name).is_symlink()]
        for name in (*files, *links):
            try:
                total += (Path(folder) / name).lstat().st_size
            except FileNotFoundError:  # gone in the meantime
                continue
        if time.monotonic() > until:
            return total, False
    return total, True
