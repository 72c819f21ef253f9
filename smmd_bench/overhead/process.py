"""The parent's side of one row's process: start it, grant a step, hear how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..storage.files import write_json
from .settings import OverheadSettings

_LONGEST = 300
"""Characters of a failure that are kept; the whole of it is in the log."""


class RowProcess:
    """A process that trains one row, a step for each `step()`.

    steps: (wall, CPU) seconds of each step. facts: what it said of its device and its peak memory.
    failure: why it ended too early, in one sentence; None while all is well. It is asked for
    nothing more after that. Files go to `logs`.
    """

    def __init__(
        self,
        settings: OverheadSettings,
        row: str,
        repeat: int,
        logs: Path,
        plugins: Sequence[Path] = (),
    ) -> None:
        self.row = row
        self.steps: list[tuple[float, float]] = []
        self.facts: dict[str, Any] = {}
        self.failure: str | None = None
        stem = "".join(c if c.isalnum() or c in ".-" else "-" for c in row).strip("-")
        request, self.log = logs / f"{repeat}-{stem}.json", logs / f"{repeat}-{stem}.log"
        write_json(
            request,
            {
                "settings": settings.to_dict(),
                "row": row,
                "repeat": repeat,
                "plugins": [str(file) for file in plugins],
            },
        )
        threads = {"OMP_NUM_THREADS": str(settings.threads)} if settings.threads else {}
        reading, writing = os.pipe()
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "smmd_bench.overhead.worker", str(request), str(writing)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[writing],
                # Threads that spin while they wait cost CPU seconds, and the rows that run.
                env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ, **threads},
            )
        os.close(writing)
        self.events = os.fdopen(reading, encoding="utf-8")

    def wait_until_ready(self) -> None:
        """Return when the model is built, or has failed to be."""
        self._hear()

    def prepare(self) -> None:
        """Have it do the first steps, from which memory is read, and wait for them."""
        self.step()

    def step(self) -> None:
        """Have it do one optimiser step, and wait for it. For a process that has not failed."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died: the events say how
            self.process.stdin.write(b"go\n")
            self.process.stdin.flush()
        self._hear()

    def finish(self) -> None:
        """After the last step: hear its peak memory, and wait for its end."""
        if self.failure is None:
            self._hear()

    def close(self) -> None:
        """End the process if it still runs."""
        self.process.kill()
        self.process.wait()
        self.events.close()
        with contextlib.suppress(BrokenPipeError):
            assert self.process.stdin is not None
            self.process.stdin.close()

    def _hear(self) -> None:
        line = self.events.readline()
        event: dict[str, Any] = json.loads(line) if line.endswith("\n") else {"event": "died"}
        match event.pop("event"):
            case "step":
                self.steps.append((event["wall"], event["cpu"]))
            case "failed":
                self.failure = f"{_cut(event['message'])}, see {self.log}"
            case "died":
                self.failure = self._last_words()
            case _:
                self.facts |= event

    def _last_words(self) -> str:
        code = self.process.wait()
        if code < 0:
            name = signal.Signals(-code).name
            hint = " (out of memory?)" if name == "SIGKILL" else ""
            return f"the process was killed by {name}{hint}, see {self.log}"
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "no word")
        return f"the process ended with status {code} ({_cut(last)}), see {self.log}"


def _cut(text: str) -> str:
    text = text.rstrip(".")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
