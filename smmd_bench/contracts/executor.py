"""Executors, and the jobs that they place."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from .engine import Progress

PROCESSES = "SMMD_BENCH_PROCESSES"
"""Environment variable of a job: how many GPUs it has, with a process each in training."""
STRATEGY = "SMMD_BENCH_STRATEGY"
"""Environment variable of a job: how these processes share the weights."""
SHARES_GPU = "SMMD_BENCH_SHARES_GPU"
"""Environment variable of a training that has its GPU together with others."""
STALL = "SMMD_BENCH_STALL"
"""The same of every process of a run: the minutes after which a silent job is ended; 0: never."""


def processes() -> int:
    """What `PROCESSES` says in this process."""
    return int(os.environ.get(PROCESSES, 1))


def shares_gpu() -> bool:
    """Whether other trainings have the GPU of this process, too."""
    return SHARES_GPU in os.environ


def is_sharded() -> bool:
    """Whether this process has only a part of the weights while it trains."""
    return processes() > 1 and os.environ.get(STRATEGY) == "fsdp2"


@dataclass(frozen=True, slots=True)
class Resources:
    """What a job needs. gpus: that it uses where there are any. threads: that it makes good use of
    on a CPU; None: all. memory_gb: of main memory, roughly."""

    gpus: int = 0
    threads: int | None = 1
    memory_gb: float = 1.0


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of work that runs in a process of its own: `python -m MODULE REQUEST EVENTS_FD`.

    `stage` is "train", "decode", "measure" or "regress"; `label` is what people read; `cells` are
    the addresses that it serves; `payload` is the JSON that the process reads, beside the stage and
    the run's folder. `place` stands before the names of its progress, where a run has several
    models or tasks.
    """

    stage: str
    label: str
    cells: tuple[str, ...]
    payload: Mapping[str, Any]
    module: str = "smmd_bench.run.worker"
    resources: Resources = field(default_factory=Resources)
    place: str = ""

    @property
    def name(self) -> str:
        """The name of its log, unique in a run."""
        return f"{self.stage}-{self.cells[0]}"

    def request(self, folder: Path) -> dict[str, Any]:
        """What the process reads, where the run is in `folder`."""
        return {"stage": self.stage, "run": str(folder.resolve()), **self.payload}

    def told(self, progress: Progress) -> Progress:
        """Progress of this job, under the names that the run shows. A progress that hears of the
        whole plan has a method `hear`, which gets the job, too."""
        hear = getattr(progress, "hear", None)

        def tell(what: str, done: int, total: int) -> None:
            name = f"{self.place}: {what}" if self.place else what
            progress(name, done, total)
            if hear is not None:
                hear(self, what, done, total)

        return tell


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended: `failure` is None or the last words of the process."""

    job: Job
    failure: str | None


class JobQueue:
    """Jobs to do, the first of them first. Whoever reads an executor's results may add more."""

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self.waiting = [*jobs]

    def take(self, fits: Callable[[Job], bool] | None = None) -> Job | None:
        """The first job (that fits), which is then no longer here; None: there is none."""
        for index, job in enumerate(self.waiting):
            if fits is None or fits(job):
                return self.waiting.pop(index)
        return None


@runtime_checkable
class Executor(Protocol):
    """Runs jobs somewhere and yields each result as its job ends. No part of any address."""

    name: ClassVar[str]

    @property
    def slots(self) -> int:
        """How many jobs it can run at the same time, where they are small."""

    def run(
        self, queue: JobQueue, folder: Path, progress: Progress
    ) -> Iterator[JobResult]:
        """Run jobs until the queue is empty after the last result; a job that dies stops no other.
        Raises UserError for a job that fits nowhere."""
