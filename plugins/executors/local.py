"""Jobs one after the other on this machine, each in a process of its own.

The process dies with this one, so a killed run leaves nothing behind that still writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from smmd_bench.contracts import Job, JobResult, Progress
from smmd_bench.run.process import WorkerProcess


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
    request = {"stage": job.stage, **job.payload}
    worker = WorkerProcess(job.module, request, folder / "logs", f"{job.stage}-{job.cells[0]}")
    failure = None
    try:
        while (event := worker.hear()) is not None:
            if event["event"] == "progress":
                progress(event["what"], event["done"], event["total"])
            elif event["event"] == "failed":
                failure = event["message"]
        ending = worker.ending()
    finally:
        worker.close()
    return ending if failure is None or worker.process.returncode < 0 else failure
