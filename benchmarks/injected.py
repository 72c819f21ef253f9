"""Commands in forked processes, and the faults that meet them at one of their changes of files.

A child has the libraries from its parent, so that a command costs what it does and not its imports.
A fault is injected where Python changes a file below a folder: opens one for writing, makes,
renames or removes one. What libraries write in C++ (safetensors, Parquet, torch) lies between such
changes; `disk_of` makes a disk that is full for these, too.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.truncate"}
HUNG_AFTER, A_DAY = 300.0, 86_400.0
"""Seconds."""
_CLOCK = time.time


@dataclass(frozen=True)
class Fault:
    """What happens at the change with this number, from 0, of the files that a command changes; of
    the fault `unread` at the file with this number that it reads."""

    name: str
    at: int

    def meet(self, event: str, path: str) -> None:
        """Be this fault; a disk stays full, but what is there can be renamed and removed."""
        if self.name == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.name == "full" and event in ("open", "os.mkdir"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if self.name == "clock":
            jump = A_DAY if self.at % 2 else -A_DAY
            time.time = lambda: _CLOCK() + jump
        if self.name in ("broken", "unread"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its status (that of a signal is negative, None: it hung), what it
    printed, how many files it changed and read, and the seconds it took."""

    status: int | None
    said: str
    changes: int
    reads: int
    seconds: float


def forked(
    words: Sequence[str],
    folder: Path,
    fault: Fault | None = None,
    *,
    around: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
    kill_after: float | None = None,
) -> Ended:
    """Run `smmd-bench` with these words in `folder`, below which its files meet the fault.

    around: a context that the child enters. kill_after: seconds until SIGKILL.
    """
    log, counted = folder / ".said", folder / ".counted"
    began = time.monotonic()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _be_the_command(words, folder, log, counted, fault, around)
    status = _wait(child, HUNG_AFTER if kill_after is None else kill_after)
    if status is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        status = None if kill_after is None else -signal.SIGKILL
    changes, reads = map(int, counted.read_text().split()) if counted.exists() else (0, 0)
    counted.unlink(missing_ok=True)
    said = log.read_text(encoding="utf-8", errors="replace")
    return Ended(status, said, changes, reads, time.monotonic() - began)


def _be_the_command(
    words: Sequence[str],
    folder: Path,
    log: Path,
    counted: Path,
    fault: Fault | None,
    around: Callable[[], contextlib.AbstractContextManager[object]],
) -> None:
    """In the child: does not return."""
    status: Any = 1
    try:
        with log.open("wb", buffering=0) as output:
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
        os.chdir(folder)
        sys.argv = ["smmd-bench", *words]
        from smmd_bench.cli import main

        with around():
            files = Files(folder, fault)
            sys.addaudithook(files.hear)
            try:
                main()
            except SystemExit as ending:
                status = ending.code or 0
            finally:
                files.ended = True
                counted.write_text(f"{files.changed} {files.read}")
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 1)


@dataclass
class Files:
    """Counts the files below a folder that change or are read; lets the fault meet its own."""

    folder: Path
    fault: Fault | None
    changed: int = 0
    read: int = 0
    ended: bool = False

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The hook."""
        if self.ended or event not in CHANGES | {"open"}:
            return
        path = arguments[0]
        if isinstance(path, int) or not Path(os.fsdecode(path)).absolute().is_relative_to(
            self.folder
        ):
            return
        if changes := _is_change(event, arguments):
            number, self.changed = self.changed, self.changed + 1
        else:
            number, self.read = self.read, self.read + 1
        fault = self.fault
        if fault is None or changes == (fault.name == "unread") or number < fault.at:
            return
        if number == fault.at or fault.name == "full":
            fault.meet(event, os.fsdecode(path))


def _is_change(event: str, arguments: tuple[Any, ...]) -> bool:
    if event != "open":
        return event in CHANGES
    _, mode, flags = arguments
    if mode:
        return bool(set(mode) & set("wax+"))
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _wait(child: int, seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found, ended = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(ended)
        time.sleep(0.02)
    return None


@contextlib.contextmanager
def disk_of(folder: Path, kilobytes: int) -> Iterator[None]:
    """Inside, a folder is a disk of this size (Linux, as root)."""
    folder.mkdir(parents=True, exist_ok=True)
    size = f"size={kilobytes}k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def grow_disk(folder: Path) -> None:
    """Give the disk of `disk_of` all the room that it may need."""
    subprocess.run(["mount", "-o", "remount,size=2g", str(folder)], check=True)


def result_of(run: Path, *, by_byte: bool = True) -> dict[str, bytes]:
    """What a run folder says, by file: results, weights and reports.

    Left out are the time of steps, when and how often commands were called, and with which others
    a cell was decoded; not `by_byte` what else stands in Parquet files than their rows.
    """
    from smmd_bench.storage.files import read_json

    found: dict[str, bytes] = {}
    for file in sorted(run.rglob("*")):
        name = file.relative_to(run).as_posix()
        if not file.is_file() or name.startswith(("logs/", "leases/", "digests/", ".")):
            continue
        if file.name in ("manifest.json", "decode.json") or "/." in f"/{name}":
            continue
        if file.suffix == ".parquet" and (file.stem == "train_log" or not by_byte):
            found[name] = _rows_of(file)
        elif file.suffix == ".json":
            found[name] = json.dumps(_untimed(read_json(file)), sort_keys=True).encode()
        elif file.name != "index.html":
            found[name] = file.read_bytes()
    return found


def _untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _untimed(v) for k, v in value.items() if "seconds" not in k and k != "created"}
    return [_untimed(v) for v in value] if isinstance(value, list) else value


def _rows_of(file: Path) -> bytes:
    import pandas as pd

    frame = pd.read_parquet(file).drop(columns="seconds", errors="ignore")
    return str(frame.to_json(double_precision=15)).encode()


def half_written(run: Path) -> list[str]:
    """Temporary files that a command left behind."""
    return [p.relative_to(run).as_posix() for p in run.rglob("*.part")]
