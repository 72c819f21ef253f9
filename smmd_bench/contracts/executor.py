"""Executors, and the jobs that they place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from .engine import Progress


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of work that runs in a process of its own: `python -m MODULE REQUEST EVENTS_FD`.

    `stage` is "train", "decode" or "regress"; `label` is what people read; `cells` are the
    addresses that it serves; `payload` is the JSON that the process reads; `module` is what it
    runs.
    """

    stage: str
    label: str
    cells: tuple[str, ...]
    payload: Mapping[str, Any]
    module: str = "smmd_bench.run.worker"


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended: `failure` is None or the last words of the process."""

    job: Job
    failure: str | None


@runtime_checkable
class Executor(Protocol):
    """Runs jobs somewhere and yields each result as its job ends. No part of any address."""

    name: ClassVar[str]

    def run(self, jobs: Sequence[Job], folder: Path, progress: Progress) -> Iterator[JobResult]:
        """Run all jobs; a job that dies never stops the others."""
