"""An executor that runs the real worker in this process, so that libraries are imported once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from smmd_bench.contracts import Job, JobResult, Progress
from smmd_bench.storage.files import write_json


@dataclass(frozen=True)
class InProcess:
    """`python -m MODULE`, without the `python`."""

    name: ClassVar[str] = "in_process"

    def run(self, jobs: Sequence[Job], folder: Path, progress: Progress) -> Iterator[JobResult]:
        """Run the jobs; what they print goes to `folder`/logs."""
        for job in jobs:
            stem = folder / "logs" / f"{job.stage}-{job.cells[0]}"
            write_json(stem.with_suffix(".json"), {"stage": job.stage, **job.payload})
            yield JobResult(job, _work(stem, job.module))


def _work(stem: Path, module: str) -> str | None:
    events = stem.with_suffix(".events")
    arguments, interrupt = sys.argv, signal.getsignal(signal.SIGINT)
    writing = os.open(events, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    sys.argv = ["worker", str(stem.with_suffix(".json")), str(writing)]
    try:
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(stem.with_suffix(".log").open("w"))
            stack.enter_context(contextlib.redirect_stdout(log))
            stack.enter_context(contextlib.redirect_stderr(log))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", ResourceWarning)  # its end is what closes its events
            failed = import_module(module).main()
    finally:
        sys.argv = arguments
        signal.signal(signal.SIGINT, interrupt)
    said = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    failures = [event["message"] for event in said if event["event"] == "failed"]
    return failures[-1] if failures else "no reason given" if failed else None
