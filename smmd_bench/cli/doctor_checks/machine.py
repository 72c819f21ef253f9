"""Memory, cores, caches, disks and the network, as far as this process may use them."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil

from ...run import machine
from ...storage.addresses import cache_folder
from ...storage.sizes import size_of, spell_bytes
from . import Finding
from .child_process import ask

_LITTLE_MEMORY = 4 * 2**30
_FULL_DISK, _LITTLE_DISK = 2**30, 10 * 2**30
_CACHE_SECONDS = 1.0
_HUB = "https://huggingface.co"
_HEAD = """
import urllib.error, urllib.request
try:
    urllib.request.urlopen(urllib.request.Request({hub!r}, method="HEAD"), timeout={seconds})
except urllib.error.HTTPError:
    pass  # it answers
except OSError as error:
    say(failure=str(getattr(error, "reason", error)))
"""
_OFFLINE = (
    "fetch data with `smmd-bench prepare` where there is a network; give copies with --data-dir, "
    "and checkpoints as folders with --model"
)


def memory_finding() -> Finding:
    """Free and total memory; in a container, of its limit."""
    free, total = machine.memory()
    text = f"{spell_bytes(free)} free of {spell_bytes(total)}"
    if free >= _LITTLE_MEMORY:
        return Finding("memory", "ok", text)
    remedy = "close other programs, or set a smaller micro_batch_size (--set)"
    return Finding("memory", "note", text, remedy)


def cores_finding() -> Finding:
    """The cores that this process may use; in a container, its share of them."""
    there, mine = psutil.cpu_count() or 1, machine.cores()
    if (share := machine.share_of_cores()) < mine:
        text = f"a share of {share:g} of {there} cores; more threads than that slow each other"
        return Finding("cores", "note", text, f"set OMP_NUM_THREADS={max(1, int(share))}")
    return Finding("cores", "ok", f"{mine}" if mine == there else f"{mine} of {there}")


def storage_findings() -> list[Finding]:
    """Our cache, the hub's, the folder of runs, and each disk that they are on."""
    places = {"cache": (cache_folder(), "SMMD_BENCH_CACHE")}
    with suppress(ImportError):  # the finding on libraries says so
        from huggingface_hub.constants import HF_HUB_CACHE

        places["hub cache"] = (Path(HF_HUB_CACHE), "HF_HOME")
    found = []
    for name, (path, variable) in places.items():
        if (why := _why_not_writable(path)) is not None:
            text = f"{path} cannot be written ({why})"
            remedy = f"set {variable} to a folder that can be written"
            found.append(Finding(name, "problem", text, remedy))
        elif not path.is_dir():
            found.append(Finding(name, "ok", f"{path}, which does not exist yet"))
        else:
            size, whole = size_of(path, _CACHE_SECONDS)
            more = "" if whole else "more than "
            found.append(Finding(name, "ok", f"{path}, {more}{spell_bytes(size)}"))
    runs = Path("runs").absolute()
    if (why := _why_not_writable(runs)) is not None:
        text = f"{runs} cannot be written ({why})"
        found.append(Finding("runs", "problem", text, "change the folder, or give --out"))
    disks: dict[int, Path] = {}
    for place in (_nearest(path) for path in [*(path for path, _ in places.values()), runs]):
        disks.setdefault(place.stat().st_dev, place)
    return [*found, *map(_disk_finding, disks.values())]


def _why_not_writable(path: Path) -> str | None:
    """Why nothing can be written below a folder, which need not exist; None: it can."""
    there = _nearest(path)
    if not there.is_dir():
        return f"{there} is a file"
    try:
        with tempfile.TemporaryFile(dir=there):
            return None
    except OSError as error:
        return str(error.strerror)


def _nearest(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    path = path.expanduser().absolute()
    return next(one for one in (path, *path.parents) if one.exists())


def _disk_finding(place: Path) -> Finding:
    usage = shutil.disk_usage(place)
    text = f"{spell_bytes(usage.free)} free of {spell_bytes(usage.total)} at {place}"
    if usage.free >= _LITTLE_DISK:
        return Finding("disk", "ok", text)
    remedy = "see what can go with `smmd-bench clean --dry-run`"
    return Finding("disk", "problem" if usage.free < _FULL_DISK else "note", text, remedy)


def network_finding(seconds: float) -> Finding:
    """Whether the hub answers within so many seconds. Being offline is only a note."""
    hub = os.environ.get("HF_ENDPOINT") or _HUB
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(variable, "").lower() in ("1", "true", "yes", "on"):
            text = f"{variable} is set: nothing is fetched from the hub"
            return Finding("network", "note", text, f"unset it to fetch; or {_OFFLINE}")
    failure = ask(_HEAD.format(hub=hub, seconds=seconds), seconds + 1).failure
    if failure is None:
        return Finding("network", "ok", f"{hub} answers")
    return Finding("network", "note", f"{hub} cannot be reached ({failure})", _OFFLINE)
