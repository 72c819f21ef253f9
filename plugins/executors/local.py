"""Jobs on this machine, each in a process of its own, as many at a time as there is room for.

With GPUs each job has one of them, which it alone sees; trainings may share one
(`trainings_per_gpu`). Without, small jobs take one thread each and large ones all cores; the last
small ones share the cores, of which some would be idle. The processes die with this one, so a
killed run leaves nothing behind that still writes. A job that is killed beside others, as where
memory ends, runs again, alone.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, ClassVar

import psutil
from joblib import cpu_count

from smmd_bench.contracts import Job, JobQueue, JobResult, Progress, parameter, positive
from smmd_bench.errors import UserError
from smmd_bench.run.process import GpuExecutor, WorkerProcess, retry_alone

_SHARE = 0.9
"""Of the memory that is free at the beginning: jobs may have so much together."""
_CGROUP = Path("/sys/fs/cgroup")
_Events = SimpleQueue[tuple[Job, tuple[Any, ...] | None, str | None]]


@dataclass(frozen=True)
class LocalExecutor(GpuExecutor):
    """Processes on this machine: on GPUs, or small ones side by side on the cores of a CPU."""

    name: ClassVar[str] = "local"

    workers: int | None = parameter(
        None, "jobs at the same time (none: as GPUs or cores suffice)", check=positive
    )
    threads: int | None = parameter(
        None,
        "threads of a CPU that a job may use (none: as its model is large)",
        check=positive,
    )

    @property
    def slots(self) -> int:
        """`workers`, or how many trainings the visible GPUs have room for, or the cores."""
        on_gpus = len(self.gpus) // self.gpus_per_cell * self.trainings_per_gpu
        return self.workers or on_gpus or self.cores

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """The names of the GPUs that are visible here."""
        import torch

        count = torch.cuda.device_count()
        # A job's own CUDA_VISIBLE_DEVICES counts from all GPUs, not from those that are left here.
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = visible.split(",") if visible else map(str, range(count))
        return tuple(name.strip() for name in names)[:count]

    @cached_property
    def cores(self) -> int:
        """The cores that this process may use, in a container those of its limit."""
        return int(cpu_count())

    def run(
        self, queue: JobQueue, folder: Path, progress: Progress
    ) -> Iterator[JobResult]:
        """Run the jobs; logs go to `folder`/logs."""
        if self.gpus and self.gpus_per_cell > len(self.gpus):
            raise UserError(
                f"local[gpus_per_cell={self.gpus_per_cell}] needs {self.gpus_per_cell} GPUs, and "
                f"this machine has {len(self.gpus)}."
            )

        room, events = _Room(self, queue), _Events()
        running: dict[str, WorkerProcess] = {}
        try:
            while True:
                while (job := queue.take(room.fits)) is not None:
                    # Started by this thread: a process whose parent's thread ends is killed.
                    worker = running[job.name] = WorkerProcess(
                        job.module, job.request(folder), folder / "logs", job.name,
                        environment=room.enter(job),
                    )  # fmt: skip
                    Thread(
                        target=_listen, args=(job, worker, events), daemon=True
                    ).start()
                if not running:
                    return

                job, step, failure = events.get()
                if step is not None:
                    job.told(progress)(*step)
                    continue
                # The system kills a process where memory ends. Alone, it may have enough.
                had_company = room.leave(job)
                running.pop(job.name).close()
                if not (had_company and retry_alone(job, failure, queue, progress)):
                    yield JobResult(job, failure)
        finally:
            for worker in running.values():
                worker.process.terminate()  # all of them, before one is waited for
            for worker in running.values():
                worker.close()


def _listen(job: Job, worker: WorkerProcess, events: _Events) -> None:
    """Pass on what a job says, and then how it ended."""
    failure = worker.follow(lambda *step: events.put((job, step, None)))
    events.put((job, None, failure))


class _Room:
    """What jobs have of this machine, and whether there is room for another. One always fits.

    Small jobs that are fewer than twice the cores, with those to come, may all be inside.
    """

    def __init__(self, executor: LocalExecutor, queue: JobQueue) -> None:
        self.executor, self.queue = executor, queue
        self.memory = _SHARE * _free_memory() / 2**30
        self.inside: dict[str, tuple[Job, list[str]]] = {}
        self.had_company: set[str] = set()

    def fits(self, job: Job) -> bool:
        if not self.inside:
            return True
        executor = self.executor
        running = [other for other, _ in self.inside.values()]
        jobs = [job, *running]
        if sum(other.resources.memory_gb for other in jobs) > self.memory:
            return False

        if executor.gpus:
            # An engine would wait for an empty GPU until no training is left.
            if executor.shares_gpu(job) and self._engine_waits():
                return False
            free = self._find_gpus(job)
            return len(jobs) <= executor.slots and self._gpus_of(job) <= len(free)

        slots = executor.slots
        threads = [self._threads(other) for other in jobs]
        unfinished = len(self.inside) + len(self.queue.waiting)
        # The last small jobs share the cores: in turn, some would wait while cores are idle.
        if not executor.workers and max(threads) == 1 and unfinished < 2 * slots:
            slots = max(slots, unfinished)
        return len(jobs) <= slots and sum(threads) <= max(executor.cores, slots)

    def enter(self, job: Job) -> dict[str, str]:
        """Take what the job needs; the environment in which it sees that alone."""
        if self.inside:
            self.had_company |= {job.name, *self.inside}
        executor = self.executor
        if not executor.gpus:
            self.inside[job.name] = job, []
            return executor.environment(job, self._threads(job))

        gpus = self._find_gpus(job)[: self._gpus_of(job)]
        self.inside[job.name] = job, gpus
        return {
            "CUDA_VISIBLE_DEVICES": ",".join(gpus),
            **executor.environment(job, self._given),
        }

    def leave(self, job: Job) -> bool:
        """Give back what it had; whether another one ran beside it."""
        del self.inside[job.name]
        had_company = job.name in self.had_company
        self.had_company.discard(job.name)
        return had_company

    def _engine_waits(self) -> bool:
        """Whether a job waits that needs whole GPUs."""
        waiting = self.queue.waiting
        return any(self.executor.needs_whole_gpus(job) for job in waiting)

    def _gpus_of(self, job: Job) -> int:
        return job.resources.gpus * self.executor.gpus_per_cell

    def _find_gpus(self, job: Job) -> list[str]:
        """Find the GPUs that have room for the job, the emptiest first."""
        jobs_on: dict[str, list[Job]] = {gpu: [] for gpu in self.executor.gpus}
        for other, gpus in self.inside.values():
            for gpu in gpus:
                jobs_on[gpu].append(other)

        free = []
        for gpu, jobs in jobs_on.items():
            can_share = all(map(self.executor.shares_gpu, [job, *jobs]))
            if not jobs or (can_share and len(jobs) < self.executor.trainings_per_gpu):
                free.append(gpu)
        return sorted(free, key=lambda gpu: len(jobs_on[gpu]))

    @property
    def _given(self) -> int | None:
        """The threads of every job; None: those that it makes good use of."""
        workers = self.executor.workers
        shared = max(1, self.executor.cores // workers) if workers else None
        return self.executor.threads or shared

    def _threads(self, job: Job) -> int:
        return self._given or job.resources.threads or self.executor.cores


def _free_memory() -> int:
    """Bytes that are free, in a container at most those of its limit."""
    free = int(psutil.virtual_memory().available)
    with suppress(OSError, ValueError):  # no container, or one without a limit
        names = "memory.max", "memory.current"
        limit, used = (int((_CGROUP / name).read_text()) for name in names)
        free = min(free, max(0, limit - used))
    return free
