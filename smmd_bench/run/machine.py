"""What of this machine a process may use: memory and cores, in a container those of its limits."""

import os
from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup")


def memory() -> tuple[int, int]:
    """Bytes that are free, and all that there are."""
    found = psutil.virtual_memory()
    total, free = int(found.total), int(found.available)
    limit = _read_limit("memory.max")
    if limit and int(limit[0]) < total:
        total = int(limit[0])
        free = min(free, max(0, total - int(_read_limit("memory.current")[0])))
    return free, total


def cores() -> int:
    """Cores that this process may run on, whatever its share of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return psutil.cpu_count() or 1


def share_of_cores() -> float:
    """Cores that this process gets the time of: fewer than it may run on in some containers."""
    limit = _read_limit("cpu.max")
    return min(cores(), int(limit[0]) / int(limit[1])) if limit else cores()


def _read_limit(name: str) -> list[str]:
    """The words of a limit of the control group; none: it has no such limit."""
    try:
        words = (_CGROUP / name).read_text().split()
    except OSError:
        return []
    return [] if words[0] == "max" else words
