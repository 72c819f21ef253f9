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

from ..storage.files import write_json

RENEWED_EVERY = 10.0
DEAD_AFTER = 60.0
"""Seconds."""


class Leases:
    """What this process has of a run. A context: leaving it gives everything back."""

    def __init__(self, run: Path) -> None:
        self.folder = run / "leases"
        self.held: dict[str, Path] = {}
        self.stopping = threading.Event()
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
        self.folder.mkdir(parents=True, exist_ok=True)
        mine = self.folder / f"{name}.{number + 1}.json"
        try:
            with mine.open("x", encoding="utf-8") as file:
                json.dump(_this_process(), file)
        except FileExistsError:
            return False
        if last is not None:
            last.unlink(missing_ok=True)
        self.held[name] = mine
        if self.thread is None:
            self.thread = threading.Thread(target=self._renew, daemon=True)
            self.thread.start()
        return True

    def give_back(self, name: str) -> None:
        """Let others have a cell."""
        mine = self.held.pop(name, None)
        if mine is not None and mine.exists():
            write_json(mine, {"free": True})

    def holder(self, name: str) -> str | None:
        """Who else has a cell now, as people say it; None: nobody."""
        last, _ = self._last(name)
        if last is None or name in self.held or self._is_free(last):
            return None
        said = _read(last)
        return f"process {said.get('pid', '?')} on {said.get('node', 'another machine')}"

    def _last(self, name: str) -> tuple[Path | None, int]:
        """The lease that counts, and its number."""
        found = {int(p.suffixes[-2][1:]): p for p in self.folder.glob(f"{name}.*.json")}
        number = max(found, default=0)
        return found.get(number), number

    def _is_free(self, lease: Path) -> bool:
        """Whether it was given back, or its holder is dead."""
        said = _read(lease)
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

    def _age(self, lease: Path) -> float:
        """Seconds since a lease was renewed, by the clock of the file system."""
        probe = self.folder / f".{os.getpid()}.now"
        probe.touch()
        try:
            return probe.stat().st_mtime - lease.stat().st_mtime
        except FileNotFoundError:
            return 0.0  # taken by another, meanwhile
        finally:
            probe.unlink(missing_ok=True)

    def _renew(self) -> None:
        """Keep the leases young. A process that was thought dead, and whose cell another one has
        taken, ends with its jobs."""
        while not self.stopping.wait(RENEWED_EVERY):
            for name, mine in [*self.held.items()]:
                with suppress(FileNotFoundError):
                    os.utime(mine)
                if name in self.held and self._last(name)[0] != mine:
                    os.kill(os.getpid(), signal.SIGKILL)


def _read(lease: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(lease.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):  # taken over, or only being written
        return {}


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
