"""Jobs one after the other on this machine, each in a process of its own.

A worker reports progress as JSON lines on a pipe of its own (libraries write on stdout what they
like; that goes to the log). It dies with this process, so a killed run leaves nothing behind that
still writes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from smmd_bench.contracts import Job, JobResult, Progress
from smmd_bench.storage.files import write_json


@dataclass(frozen=True)
class LocalExecutor:
    """Subprocesses of this one, in order."""

    name: ClassVar[str] = "local"

    def run(self, jobs: Sequence[Job], folder: Path, progress: Progress) -> Iterator[JobResult]:
        """Run the jobs; logs go to `folder`/logs."""
        places = {(c["model"], c["task"]) for job in jobs for c in job.payload["cells"]}
        for job in jobs:
            yield JobResult(job, _run(job, folder, _named(job, progress, len(places) > 1)))


def _named(job: Job, progress: Progress, several: bool) -> Progress:
    """Progress that says which model and task it is of, where a run has several."""
    first = job.payload["cells"][0]
    place = f"{first['model_label']} {first['task'] if job.stage == 'train' else ''}".strip()

    def named(what: str, done: int, total: int) -> None:
        progress(f"{place}: {what}" if several else what, done, total)

    return named


def _run(job: Job, folder: Path, progress: Progress) -> str | None:
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    stem = f"{job.stage}-{job.cells[0]}"
    request, log = logs / f"{stem}.json", logs / f"{stem}.log"
    write_json(request, {"stage": job.stage, **job.payload})
    reading, writing = os.pipe()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", job.module, str(request), str(writing)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[writing],
            # Threads that spin while they wait make a shared machine several times slower.
            env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ},
        )
        os.close(writing)
        failure = None
        try:
            with os.fdopen(reading, encoding="utf-8") as events:
                for line in events:
                    event = json.loads(line)
                    if event["event"] == "progress":
                        progress(event["what"], event["done"], event["total"])
                    elif event["event"] == "failed":
                        failure = event["message"]
            code = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
    if code < 0:
        name = signal.Signals(-code).name
        hint = " (out of memory?)" if name == "SIGKILL" else ""
        return f"the process was killed by {name}{hint}, see {log}"
    if code and failure is None:
        return f"the process ended with status {code}, see {log}"
    return failure
