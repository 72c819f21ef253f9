"""The peak memory of this process.

On a CPU it is the peak of the resident set (VmHWM, Linux alone). There glibc keeps freed blocks of
up to 32 MiB for later, more or fewer of them from process to process, which moves the peak by some
percent. `allocate(exact=True)` has it give back all of 1 MiB and more, which costs time; so memory
is read in steps of its own, and `allocate(exact=False)` is called before anything is timed.
"""

import ctypes
import gc
import sys
from contextlib import suppress
from pathlib import Path

import torch

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_MIB = 2**20


def allocate(*, exact: bool) -> None:
    """Give large blocks back to the system when they are freed (exact), or keep them as glibc does
    by itself once a block of 32 MiB has been freed."""
    usual = {_MMAP_THRESHOLD: 32 * _MIB, _TRIM_THRESHOLD: 64 * _MIB}
    if sys.platform == "linux":
        with suppress(AttributeError):  # a C library other than glibc
            for parameter, value in ({_MMAP_THRESHOLD: _MIB} if exact else usual).items():
                ctypes.CDLL(None).mallopt(parameter, value)


def reset_peak(device: str) -> None:
    """Count the peak from here; what is held now (the weights) stays in it."""
    gc.collect()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    elif sys.platform == "linux":
        with suppress(AttributeError):  # a C library other than glibc
            ctypes.CDLL(None).malloc_trim(0)
        with suppress(OSError):  # a container that forbids it: the peak is that of the whole run
            Path("/proc/self/clear_refs").write_text("5")


def peak_bytes(device: str) -> int | None:
    """Of CUDA memory that was allocated, or of the resident set; None where it cannot be known."""
    if device == "cuda":
        return int(torch.cuda.max_memory_allocated())
    if sys.platform != "linux":
        return None
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
