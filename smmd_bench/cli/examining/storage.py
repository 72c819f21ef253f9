"""The caches: where, how large, writable or not; and the free space of their disks."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from ...storage.addresses import cache_folder
from ...storage.sizes import size_of, spell_bytes
from .finding import Finding

_FULL, _LITTLE = 2**30, 10 * 2**30
_SECONDS = 1.0


def storage_findings() -> list[Finding]:
    """Our cache, the hub's, the folder of runs, and each disk that they are on."""
    places = {"cache": (cache_folder(), "SMMD_BENCH_CACHE")}
    try:
        from huggingface_hub.constants import HF_HUB_CACHE
    except ImportError:  # the finding on libraries says so
        pass
    else:
        places["hub cache"] = (Path(HF_HUB_CACHE), "HF_HOME")
    found = [_cache(name, *place) for name, place in places.items()]
    runs = Path("runs").absolute()
    if (why := _why_not_writable(runs)) is not None:
        text = f"{runs} cannot be written ({why})"
        found.append(Finding("runs", "problem", text, "change the folder, or give --out"))
    return [*found, *_disks([*(path for path, _ in places.values()), runs])]


def _cache(name: str, path: Path, variable: str) -> Finding:
    if (why := _why_not_writable(path)) is not None:
        remedy = f"set {variable} to a folder that can be written"
        return Finding(name, "problem", f"{path} cannot be written ({why})", remedy)
    if not path.is_dir():
        return Finding(name, "ok", f"{path}, not there yet")
    size, whole = size_of(path, _SECONDS)
    more = "" if whole else "more than "
    return Finding(name, "ok", f"{path}, {more}{spell_bytes(size)}")


def _why_not_writable(path: Path) -> str | None:
    """Why nothing can be written below a folder, which need not be there; None: it can."""
    there = _nearest(path)
    if not there.is_dir():
        return f"{there} is a file"
    try:
        with tempfile.TemporaryFile(dir=there):
            return None
    except OSError as error:
        return str(error.strerror)


def _nearest(path: Path) -> Path:
    path = path.expanduser().absolute()
    return next(one for one in (path, *path.parents) if one.exists())


def _disks(places: list[Path]) -> list[Finding]:
    """One finding a disk."""
    found: dict[int, Path] = {}
    for place in map(_nearest, places):
        found.setdefault(place.stat().st_dev, place)
    return [_disk(place) for place in found.values()]


def _disk(place: Path) -> Finding:
    usage = shutil.disk_usage(place)
    text = f"{spell_bytes(usage.free)} free of {spell_bytes(usage.total)} at {place}"
    if usage.free >= _LITTLE:
        return Finding("disk", "ok", text)
    remedy = "see what can go with `smmd-bench clean --dry-run`"
    return Finding("disk", "problem" if usage.free < _FULL else "note", text, remedy)
