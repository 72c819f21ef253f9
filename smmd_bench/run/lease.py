"""Leases on cells: several processes, on several machines, share the folder of a run.

RUN/leases/ADDRESS.N.json says who has a cell, as the N-th in turn; the file with the highest number
counts. It is taken by making the next one, which one process alone can do, when the last was given
back or its holder is dead. On one machine that is seen at once, by the process. From another it is
seen by the time of the file, which a thread of the holder renews, against the time of the file
system itself: clocks of machines need not agree.
"""

import json
import os
import platform
import signal
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil
from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem

RENEWED_EVERY = 10.0
DEAD_AFTER = 60.0
"""Seconds."""


class Leases:
    """What this process has of a run. A context: leaving it gives everything back."""

    def __init__(self, run: Path | str, files: AbstractFileSystem | None = None) -> None:
        self.fs = files or LocalFileSystem(auto_mkdir=True)
        self.folder = f"{run}/leases"
        self.held: dict[str, str] = {}
        self.stopping, self.lock = threading.Event(), threading.Lock()
        self.thread: threading.Thread | None = None

    def __enter__(self) -> "Leases":
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for name in [*self.held]:
            self.give_back(name)

    def take(self, name: str) -> bool:
        """Have the lease of a cell, from now on or already; False: another process has it."""
        if name in self.held:
            return True
        last, number = self._last(name)
        if last is not None and not self._is_free(last):
            return False
        mine = f"{self.folder}/{name}.{number + 1}.json"
        try:
            with self.fs.open(mine, "xb") as file:
                file.write(_said(_this_process()))
        except FileExistsError:
            return False
        if last is not None:
            with suppress(FileNotFoundError):
                self.fs.rm_file(last)
        self.held[name] = mine
        if self.thread is None:
            self.thread = threading.Thread(target=self._renew, daemon=True)
            self.thread.start()
        return True

    def give_back(self, name: str) -> None:
        """Let others have a cell."""
        with self.lock:
            mine = self.held.pop(name, None)
            if mine is not None and self.fs.exists(mine):
                self.fs.pipe_file(mine, _said({"free": True}))

    def holder(self, name: str) -> str | None:
        """Who else has a cell now, as people say it; None: nobody."""
        last, _ = self._last(name)
        if last is None or name in self.held or self._is_free(last):
            return None
        said = self._read(last)
        return f"process {said.get('pid', '?')} on {said.get('node', 'another machine')}"

    def _last(self, name: str) -> tuple[str | None, int]:
        """The lease that counts, and its number."""
        try:
            there = self.fs.ls(self.folder, detail=False)
        except FileNotFoundError:
            return None, 0
        names = (lease.rpartition("/")[2].split(".") for lease in there)
        numbers = (int(n) for n in (n[1] for n in names if n[0] == name and n[2:] == ["json"]))
        number = max(numbers, default=0)
        return (f"{self.folder}/{name}.{number}.json" if number else None), number

    def _is_free(self, lease: str) -> bool:
        """Whether it was given back, or its holder is dead."""
        said = self._read(lease)
        if said.get("free"):
            return True
        here = _this_process()
        if said.get("machine") != here["machine"]:
            return self._age(lease) > DEAD_AFTER  # so is one that is only being written
        if said["pid"] == here["pid"]:
            return True  # what this process had before
        with suppress(psutil.NoSuchProcess):
            return bool(psutil.Process(said["pid"]).create_time() != said["started"])
        return True

    def _age(self, lease: str) -> float:
        """Seconds since a lease was renewed, by the clock of the file system."""
        probe = f"{self.folder}/.{platform.node()}-{os.getpid()}.now"
        self.fs.pipe_file(probe, b"")
        try:
            age = self.fs.modified(probe) - self.fs.modified(lease)
        except FileNotFoundError:
            return 0.0  # taken by another, meanwhile
        finally:
            self.fs.rm_file(probe)
        return float(age.total_seconds())

    def _renew(self) -> None:
        """Keep the leases young. A process that was thought dead, and whose cell another one has
        taken, ends with its jobs."""
        while not self.stopping.wait(RENEWED_EVERY):
            for name, mine in [*self.held.items()]:
                with suppress(Exception):  # a storage does not answer: it may the next time
                    self._renew_one(name, mine)

    def _renew_one(self, name: str, mine: str) -> None:
        last, _ = self._last(name)
        with self.lock:
            if name not in self.held:
                return  # given back, meanwhile
            if last != mine:
                os.kill(os.getpid(), signal.SIGKILL)
            self.fs.pipe_file(mine, _said(_this_process()))

    def _read(self, lease: str) -> dict[str, Any]:
        try:
            return dict(json.loads(self.fs.cat_file(lease)))
        except (FileNotFoundError, ValueError):  # taken over, or only being written
            return {}


def _said(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode()


@cache
def _this_process() -> dict[str, Any]:
    """What tells this process from all others."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    space = Path("/proc/self/ns/pid")
    machine = [platform.node(), boot.read_text().strip() if boot.exists() else ""]
    machine.append(str(space.readlink()) if space.is_symlink() else "")
    pid = os.getpid()
    return {
        "node": platform.node(),
        "machine": " ".join(machine),
        "pid": pid,
        "started": psutil.Process(pid).create_time(),
    }
