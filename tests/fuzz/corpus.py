"""The inputs that are kept of each target: their files, their choice, and smaller ones."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from .targets import call

CORPUS = Path(__file__).parent / "corpus"
OURS = tuple(
    str(CORPUS.parents[2] / name) for name in ("smmd_bench", "tasks", "plugins", "reports")
)
LONGEST = 4_096


def folder_of(name: str) -> Path:
    """Where the inputs of a target are."""
    return CORPUS / name


def files_of(name: str, pattern: str = "*") -> list[Path]:
    """The inputs of a target."""
    return sorted(folder_of(name).glob(pattern))


def name_of(data: bytes) -> str:
    """A name that follows from the content."""
    return hashlib.blake2b(data, digest_size=6).hexdigest()


def smaller(data: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """The input without parts that it fails without: halves first, single bytes at last."""
    size = len(data) // 2
    while size:
        at = 0
        while at < len(data):
            less = data[:at] + data[at + size :]
            if fails(less):
                data = less
            else:
                at += size
        size //= 2
    return data


def keep_best(name: str, found: Path, most: int) -> None:
    """Copy those of the inputs found that add lines of the product to the corpus."""
    seen = set[tuple[str, int]]()
    for file in files_of(name):
        seen |= _lines(name, file.read_bytes())
    kept = 0
    for file in sorted(found.iterdir(), key=lambda file: (file.stat().st_size, file.name)):
        data = file.read_bytes()
        if kept == most or len(data) > LONGEST:
            break
        if new := _lines(name, data) - seen:
            seen |= new
            kept += 1
            (folder_of(name) / name_of(data)).write_bytes(data)


def _lines(name: str, data: bytes) -> set[tuple[str, int]]:
    """The lines of the product that an input runs."""
    found: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        found.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        call(name, data)
    except Exception:
        return set()
    finally:
        sys.settrace(None)
    return found
