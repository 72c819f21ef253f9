"""What was read of a file, kept in memory for as long as the file stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_FILES = 20_000


def remembered(read: Callable[[Path], T | None]) -> Callable[[Path], T | None]:
    """The same function, which reads a file again only when its size, time or inode is another one.

    Where there is no file it returns None. Nobody may change what it returns.
    """

    @lru_cache(maxsize=_FILES)
    def once(path: Path, size: int, modified: int, inode: int) -> T | None:
        return read(path)

    @wraps(read)
    def now(path: Path) -> T | None:
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return once(path, status.st_size, status.st_mtime_ns, status.st_ino)

    return now
