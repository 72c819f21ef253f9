"""Jobs on this machine, each in a process of its own, as many at a time as there is room for.

With GPUs each job has one of them, which it alone sees. Without, small jobs take one thread each
and large ones all cores; the last small ones share the cores, of which some would be idle. The
processes die with this one, so a killed run leaves nothing behind that still writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, ClassVar, Literal

from smmd_bench.contracts import Job, JobQueue, JobResult, PerCell, Progress, parameter, positive
from smmd_bench.errors import UserError
from smmd_bench.run.machine import memory, share_of_cores
from smmd_bench.run.process import WorkerProcess, environment_of

_SHARE = 0.9
"""Of the memory that is free at the beginning: jobs may have so much together."""
_Events = SimpleQueue[tuple[str, dict[str, Any] | None]]


@dataclass(frozen=True)
class LocalExecutor:
    """Processes on this machine: one a GPU, or small ones side by side on the cores of a CPU."""

    name: ClassVar[str] = "local"

    workers: int | None = parameter(
        None, "jobs at the same time (none: one a GPU, or one a core)", check=positive
    )
    threads: int | None = parameter(
        None, "threads of a CPU that a job may use (none: as its model is large)", check=positive
    )

    gpus_per_cell: int = parameter(
        1, "GPUs of a training and of an engine; on a CPU processes of a training", check=positive
    )
    strategy: Literal["ddp", "fsdp2"] = parameter(
        "ddp", "fsdp2 spreads the weights over the GPUs of a cell: for models that one cannot train"
    )

    def __post_init__(self) -> None:
        _ = self._per_cell

    @property
    def _per_cell(self) -> PerCell:
        return PerCell(self.gpus_per_cell, self.strategy)

    @property
    def slots(self) -> int:
        """`workers`, or how often the visible GPUs suffice, or the cores."""
        return self.workers or len(self._gpus) // self.gpus_per_cell or self._cores

    @cached_property
    def _gpus(self) -> tuple[str, ...]:
        """The names of the GPUs that are visible here."""
        import torch

        count, visible = torch.cuda.device_count(), os.environ.get("CUDA_VISIBLE_DEVICES")
        names = visible.split(",") if visible else map(str, range(count))
        return tuple(name.strip() for name in names)[:count]

    @cached_property
    def _cores(self) -> int:
        return max(1, int(share_of_cores()))

    def run(self, queue: JobQueue, folder: Path, progress: Progress) -> Iterator[JobResult]:
        """Run the jobs; logs go to `folder`/logs."""
        if self._gpus and self.gpus_per_cell > len(self._gpus):
            raise UserError(
                f"local[gpus_per_cell={self.gpus_per_cell}] needs {self.gpus_per_cell} GPUs, and "
                f"this machine has {len(self._gpus)}."
            )
        threads = self.threads or (max(1, self._cores // self.workers) if self.workers else None)
        room = _Room(self.slots, self._cores, threads, [*self._gpus], self._per_cell)
        if not (self.workers or self._gpus):
            room.queue = queue
        running: dict[str, _Running] = {}
        events: _Events = SimpleQueue()
        try:
            while True:
                while (job := queue.take(room.fits)) is not None:
                    running[job.name] = _Running(job, folder, room.enter(job), events)
                if not running:
                    return
                name, event = events.get()
                if event is not None:
                    running[name].hear(event, progress)
                    continue
                ended = running.pop(name)
                room.leave(ended.job)
                yield JobResult(ended.job, ended.end())
        finally:
            for one in running.values():
                one.worker.ask_to_end()
            for one in running.values():
                one.worker.close()


class _Room:
    """What jobs have of this machine, and whether there is room for another. One always fits.

    queue: with the jobs to come; where they and those inside are more than the cores, and fewer
    than twice as many, all may be inside.
    """

    queue: JobQueue | None = None

    def __init__(
        self, workers: int, cores: int, threads: int | None, gpus: list[str], per_cell: PerCell
    ) -> None:
        self.per_cell = per_cell
        self.workers, self.cores, self.threads = workers, cores, threads
        self.gpus, self.on_gpus = gpus, bool(gpus)
        self.memory = _SHARE * memory()[0] / 2**30
        self.inside: dict[str, tuple[Job, list[str]]] = {}

    def fits(self, job: Job) -> bool:
        if not self.inside:
            return True
        others = [other for other, _ in self.inside.values()]
        left = len(others) + (len(self.queue.waiting) if self.queue else 0)
        small = all(self._threads(j) == 1 for j in [*others, job])
        most = left if small and self.workers < left < 2 * self.workers else self.workers
        if len(others) >= most:
            return False
        if sum(j.resources.memory_gb for j in [*others, job]) > self.memory:
            return False
        if self.on_gpus:
            return len(self.gpus) >= job.resources.gpus * self.per_cell.gpus
        return sum(map(self._threads, [*others, job])) <= max(self.cores, most)

    def enter(self, job: Job) -> dict[str, str]:
        """Take what the job needs; the environment in which it sees that alone."""
        count = job.resources.gpus * self.per_cell.gpus if self.on_gpus else 0
        mine = [self.gpus.pop(0) for _ in range(count)]
        self.inside[job.name] = job, mine
        threads = self.threads if self.on_gpus else self._threads(job)
        seen = {"CUDA_VISIBLE_DEVICES": ",".join(mine)} if self.on_gpus else {}
        return {**seen, **environment_of(job, threads, self.per_cell)}

    def leave(self, job: Job) -> None:
        """Give back what it had."""
        _, gpus = self.inside.pop(job.name)
        self.gpus += gpus

    def _threads(self, job: Job) -> int:
        return self.threads or job.resources.threads or self.cores


class _Running:
    """A job at work. A thread of its own reads what it says; the process is this thread's child,
    because a process whose parent's thread ends is killed."""

    def __init__(
        self,
        job: Job,
        folder: Path,
        environment: dict[str, str],
        events: _Events,
    ) -> None:
        self.job = job
        self.worker = WorkerProcess(
            job.module, job.request(folder), folder / "logs", job.name, environment=environment
        )
        self.reader = Thread(target=self._read, args=(events,), daemon=True)
        self.reader.start()

    def _read(self, events: _Events) -> None:
        event: dict[str, Any] | None = {}
        while event is not None:
            event = self.worker.hear()
            events.put((self.job.name, event))

    def hear(self, event: dict[str, Any], progress: Progress) -> None:
        if event["event"] == "progress":
            self.job.told(progress)(event["what"], event["done"], event["total"])

    def end(self) -> str | None:
        """Close the process; its last words where it failed."""
        ending = self.worker.ending()
        self.worker.close()
        return ending
