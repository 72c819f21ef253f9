"""Memory and cores, as far as this process may use them."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from ...storage.sizes import spell_bytes
from .finding import Finding

_CGROUP = Path("/sys/fs/cgroup")
_LITTLE = 4 * 2**30


def memory_finding() -> Finding:
    """Free and total memory; of a container, its limit."""
    memory = psutil.virtual_memory()
    total, free = int(memory.total), int(memory.available)
    limit = _limit("memory.max")
    if limit is not None and limit < total:
        used = _limit("memory.current") or 0
        total, free = limit, min(free, max(0, limit - used))
    text = f"{spell_bytes(free)} free of {spell_bytes(total)}"
    if free < _LITTLE:
        remedy = "close other programs, or set a smaller micro_batch_size (--set)"
        return Finding("memory", "note", text, remedy)
    return Finding("memory", "ok", text)


def cores_finding() -> Finding:
    """Cores that this process may use, of those that there are."""
    there = psutil.cpu_count() or 1
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    quota = _quota()
    if quota is not None and quota < mine:
        threads = f"set OMP_NUM_THREADS={max(1, int(quota))}"
        text = f"a share of {quota:g} of {there} cores: more threads than that wait for each other"
        return Finding("cores", "note", text, threads)
    return Finding("cores", "ok", f"{mine}" if mine == there else f"{mine} of {there}")


def _limit(name: str) -> int | None:
    """A number of bytes of the control group; None: there is none."""
    try:
        return int((_CGROUP / name).read_text())
    except (OSError, ValueError):  # "max"
        return None


def _quota() -> float | None:
    """The cores' worth of time that the control group has; None: it has all."""
    try:
        quota, period = (_CGROUP / "cpu.max").read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):
        return None
