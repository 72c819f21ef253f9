"""The parent's side of a process that works for this one: start it, hear it, learn how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..storage.files import write_json

_LONGEST = 300
"""Characters of a last line that are kept; the log has all of it."""


class WorkerProcess:
    """`python -m MODULE REQUEST.json EVENTS_FD`, which reports by `smmd_bench.run.events`.

    Libraries write on stdout what they like: that goes to the log. The process dies with this one.
    `name`: of the request and of the log in the folder `logs`. stdin: `subprocess.PIPE` where it is
    written to. threads: of OpenMP; None: as many as there are.
    """

    def __init__(
        self,
        module: str,
        request: Mapping[str, Any],
        logs: Path,
        name: str,
        *,
        stdin: int = subprocess.DEVNULL,
        threads: int | None = None,
    ) -> None:
        file, self.log = logs / f"{name}.json", logs / f"{name}.log"
        write_json(file, request)
        # Threads that spin while they wait make a shared machine several times slower.
        env = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ}
        if threads is not None:
            env["OMP_NUM_THREADS"] = str(threads)
        reading, writing = os.pipe()
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, str(file), str(writing)],
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[writing],
                env=env,
            )
        os.close(writing)
        self._events = os.fdopen(reading, encoding="utf-8")

    def hear(self) -> dict[str, Any] | None:
        """The next event; None: there will be none."""
        line = self._events.readline()
        return dict(json.loads(line)) if line.endswith("\n") else None

    def ending(self) -> str | None:
        """How the process ended, with the last line of its log; None: well."""
        code = self.process.wait()
        if code < 0:
            name = signal.Signals(-code).name
            hint = " (out of memory?)" if name == "SIGKILL" else ""
            return f"the process was killed by {name}{hint}, see {self.log}"
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        last = next((line.strip() for line in reversed(lines) if line.strip()), "no output")
        return (
            f"the process ended with status {code} ({cut(last)}), see {self.log}" if code else None
        )

    def close(self) -> None:
        """End the process if it still runs."""
        self.process.kill()
        self.process.wait()
        self._events.close()
        with contextlib.suppress(BrokenPipeError):
            if self.process.stdin is not None:
                self.process.stdin.close()


def cut(text: str) -> str:
    """A sentence of another process, without its full stop, cut where it is long."""
    text = text.rstrip(".")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
