"""Content addresses: digests of what a result follows from, and of nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from .files import read_json, write_json

_ALWAYS_READ = 64 * 2**20
"""Bytes up to which a file is read in every process, because reading it takes no time."""
_CLOCK_STEP = 2 * 10**9
"""Nanoseconds within which a file system may give two changes one time: those of FAT."""


def address(content: Mapping[str, Any]) -> str:
    """Give 16 hexadecimal digits of the BLAKE2b digest of the content's canonical JSON."""
    # Sets are sorted: Python's own order is another one in each process.
    plain = partial(sorted, key=repr)
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=plain)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def folder_name(words: Iterable[str], content: Mapping[str, Any]) -> str:
    """Make a readable name for a folder that follows from its content: words, and six digits of
    it."""
    readable = "_".join(map(file_word, words))
    # File systems take 255 bytes, and people read fewer.
    return f"{readable[:80]}_{address(content)[:6]}"


def file_word(word: str) -> str:
    """Spell a word as a part of a file's name: other characters than letters, digits, "." become
    "-"."""
    return "".join(c if c.isalnum() or c in ".-" else "-" for c in word).strip("-")


def digest_of_files(files: Iterable[Path], root: Path) -> str:
    """Digest all of the files' contents and names relative to `root`; that of each is cached."""
    return address(
        {str(file.relative_to(root)): _digest(file) for file in sorted(files)}
    )


def digest_of_weights(folder: Path) -> str:
    """Digest the contents of the safetensors files in a checkpoint's folder."""
    files = sorted(folder.glob("*.safetensors"))
    return address({file.name: content_digest(file) for file in files})


def cache_folder() -> Path:
    """Find the cache: `$SMMD_BENCH_CACHE`, else `~/.cache/smmd-bench`."""
    root = os.environ.get("SMMD_BENCH_CACHE")
    return Path(root) if root else Path.home() / ".cache" / "smmd-bench"


def _digest(file: Path) -> str:
    """Digest a file's content, which is read again whenever the file may have changed."""
    status = file.stat()
    # No program can set the time of the last change back: a copy that keeps size and date has
    # another one, or another inode.
    seen = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    # A file that was changed just now may change again without another time.
    if time.time_ns() - status.st_ctime_ns < _CLOCK_STEP:
        return content_digest(file)
    return _recall_digest(file.resolve(), *seen)


@cache  # of this process
def _recall_digest(path: Path, size: int, mtime: int, ctime: int, inode: int) -> str:
    if size <= _ALWAYS_READ:
        return content_digest(path)
    seen = {
        "path": str(path),
        "size": size,
        "mtime": mtime,
        "ctime": ctime,
        "inode": inode,
    }
    kept = cache_folder() / "digests" / f"{address(seen)}.json"
    content = read_json(kept)
    if content is None:
        content = {"path": str(path), "digest": content_digest(path)}
        write_json(kept, content)
    return str(content["digest"])


def content_digest(file: Path) -> str:
    """Give 32 hexadecimal digits of the BLAKE2b digest of a file's content."""
    with file.open("rb") as stream:
        return hashlib.file_digest(
            stream, lambda: hashlib.blake2b(digest_size=16)
        ).hexdigest()
