"""How a process that works for this one starts, and what it says: JSON lines on a pipe."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from ..plugin_system.registry import load_plugin_file
from ..storage.files import read_json
from .run_directory import record_failure

_SECONDS = 0.2
_PR_SET_PDEATHSIG = 1


class Events:
    """Writes events; if nobody reads any more, the process ends."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.last: dict[str, float] = {}

    def progress(self, what: str, done: int, total: int) -> None:
        """At most five events a second for each `what`, and always the last."""
        now = time.monotonic()
        if done < total and now - self.last.get(what, 0.0) < _SECONDS:
            return
        self.last[what] = now
        self.send({"event": "progress", "what": what, "done": done, "total": total})

    def send(self, event: dict[str, object]) -> None:
        """One JSON line."""
        try:
            print(json.dumps(event), file=self.stream, flush=True)
        except BrokenPipeError:
            os._exit(1)

    def record(self, failures: Mapping[Path, BaseException], stage: str) -> int:
        """Write the FAILED.json of each folder; the exit status."""
        for folder, failure in failures.items():
            record_failure(folder, stage, failure)
            self.send({"event": "failed", "message": str(failure) or type(failure).__name__})
        return 1 if failures else 0


@contextmanager
def start() -> Iterator[tuple[dict[str, Any], Events]]:
    """The request and the events of this process: `python -m MODULE REQUEST.json EVENTS_FD`.

    Ctrl-C on a terminal reaches every process there: this one leaves it to its parent, which ends
    it, or else it would record a failure that is none.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    request = read_json(Path(sys.argv[1]))
    assert request is not None
    with os.fdopen(int(sys.argv[2]), "w", encoding="utf-8") as stream:
        for file in request["plugins"]:
            load_plugin_file(Path(file))
        yield request, Events(stream)
