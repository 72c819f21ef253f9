"""The process of one row, which does a step when it is told to."""

import contextlib
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..run.process import WorkerProcess, cut, threads_of
from .settings import OverheadSettings


class RowProcess:
    """Trains one row, a step for each `step()`.

    steps: (wall, CPU) seconds of each step. facts: what the process said of its device and its peak
    memory. failure: why it ended too early, in one sentence; None while all is well.
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
        name = f"{repeat}-" + re.sub(r"[^\w.-]", "-", row).strip("-")
        request = {"settings": settings.to_dict(), "row": row, "repeat": repeat}
        self.worker = WorkerProcess(
            "smmd_bench.overhead.worker",
            {**request, "plugins": [str(file) for file in plugins]},
            logs,
            name,
            stdin=subprocess.PIPE,
            environment=threads_of(settings.threads),
        )

    def hear(self) -> None:
        """Wait until the model is built, or after the last step for the peak memory."""
        if self.failure is not None:
            return
        event = self.worker.hear() or {"event": "died"}
        match event.pop("event"):
            case "step":
                self.steps.append((event["wall"], event["cpu"]))
            case "failed":
                self.failure = f"{cut(event['message'])}, see {self.worker.log}"
            case "died":
                self.failure = self.worker.ending() or "the process ended without a result"
            case _:
                self.facts |= event

    def prepare(self) -> None:
        """Do the first steps, from which memory is read."""
        self.step()

    def step(self) -> None:
        """Do one optimiser step."""
        if self.failure is not None:
            return
        stdin = self.worker.process.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died: the events say how
            stdin.write(b"go\n")
            stdin.flush()
        self.hear()

    def close(self) -> None:
        """End the process if it still runs."""
        self.worker.close()
