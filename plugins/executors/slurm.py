"""Jobs on a Slurm cluster, through submitit: one Slurm job for each training or engine.

All nodes see the folder of the run and this Python environment. A job that Slurm preempts, or whose
hours are over, is queued again: a training goes on after its last state. A job appends what it says
to `logs/NAME.events`, which this process reads; Slurm's own output is in `logs/slurm`. The jobs are
cancelled when this process ends, or where it was killed, when the next one begins. With
`trainings_per_gpu`, a Slurm job is several trainings at a time, as Slurm gives whole GPUs alone.
"""

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from smmd_bench.contracts import Job, JobQueue, JobResult, Progress, parameter, positive
from smmd_bench.errors import UserError, reason_of
from smmd_bench.run.process import GpuExecutor, WorkerProcess, retry_alone, run_alone


@dataclass(frozen=True)
class SlurmExecutor(GpuExecutor):
    """A Slurm job for each training or engine (or for trainings that share a GPU)."""

    name: ClassVar[str] = "slurm"

    partition: str | None = parameter(None, "of the cluster (none: its default)")
    hours: float = parameter(
        24.0, "of a job, which is then queued again", check=positive
    )
    cpus: int = parameter(8, "cores of a job", check=positive)
    memory_gb: float = parameter(64.0, "main memory of a job", check=positive)
    jobs: int | None = parameter(
        None,
        "jobs that are queued or run at the same time (none: 64, or 1 with cluster=local)",
        check=positive,
    )
    options: str = parameter("", "more of sbatch: NAME=VALUE, parted by spaces")
    cluster: Literal["slurm", "local"] = parameter(
        "slurm", "local: processes here, for a trial"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if any("=" not in option.strip("-=") for option in self.options.split()):
            raise UserError(
                f"options={self.options}: give NAME=VALUE, parted by spaces."
            )

    @property
    def slots(self) -> int:
        """`jobs`, of which each may be several trainings: Slurm knows better when they run."""
        return self.jobs_at_once * self.trainings_per_gpu

    @property
    def jobs_at_once(self) -> int:
        """`jobs`, or few for a trial on this machine."""
        return self.jobs or (1 if self.cluster == "local" else 64)

    def run(
        self, queue: JobQueue, folder: Path, progress: Progress
    ) -> Iterator[JobResult]:
        """Run the jobs; logs go to `folder`/logs."""
        if self.cluster == "slurm":
            _cancel_orphans(folder / "logs" / "slurm")
        running: list[_Running] = []
        try:
            while True:
                while len(running) < self.jobs_at_once and (jobs := self._take(queue)):
                    running.append(_Running(self._submit(jobs, folder), jobs, folder))
                if not running:
                    return

                time.sleep(1)
                for attempt in [*running]:
                    # asked first: what it says before that is told
                    is_done = attempt.sent.done()
                    attempt.tell(progress)
                    if not is_done:
                        continue

                    running.remove(attempt)
                    for job, failure in attempt.end():
                        had_company = len(attempt.jobs) > 1
                        if not (
                            had_company and retry_alone(job, failure, queue, progress)
                        ):
                            yield JobResult(job, failure)
        finally:
            for attempt in running:
                attempt.sent.cancel(check=False)

    def _take(self, queue: JobQueue) -> list[Job]:
        """Take the next job, with the trainings that share its GPU if it may share one."""
        first = queue.take()
        if first is None:
            return []

        jobs = [first]
        while self.shares_gpu(first) and len(jobs) < self.trainings_per_gpu:
            other = queue.take(self.shares_gpu)
            if other is None:
                break
            jobs.append(other)
        # With nobody beside it, a training may halve its micro-batches where memory ends.
        return jobs if len(jobs) > 1 else [run_alone(first)]

    def _submit(self, jobs: Sequence[Job], folder: Path) -> Any:
        """Submit a Slurm job for these. Raises UserError where there is no submitit or no Slurm."""
        try:
            import submitit
        except ImportError:
            raise UserError(
                "submitit is not installed: pip install 'smmd-bench[slurm]'."
            ) from None

        first = jobs[0]
        pairs = (option.lstrip("-").split("=", 1) for option in self.options.split())
        # submitit spells the options of sbatch with underscores.
        options = {name.replace("-", "_"): value for name, value in pairs}

        gpus = first.resources.gpus * self.gpus_per_cell
        if self.cluster == "local":
            import torch

            # submitit shows a job the GPUs that it asks for, also where there are none.
            gpus = min(gpus, torch.cuda.device_count())

        # By default submitit gives a job up after three ends of its hours.
        restarts = {f"{self.cluster}_max_num_timeout": 100}
        try:
            executor = submitit.AutoExecutor(
                folder / "logs" / "slurm", cluster=self.cluster, **restarts
            )
            executor.update_parameters(
                name=first.name,
                timeout_min=max(1, round(60 * self.hours)),
                gpus_per_node=gpus,
                cpus_per_task=self.cpus,
                mem_gb=self.memory_gb,
                slurm_partition=self.partition,
                slurm_additional_parameters=options,
            )
            environment = self.environment(first, None)
            return executor.submit(Work(tuple(jobs), folder.resolve(), environment))
        except (RuntimeError, submitit.core.utils.FailedJobError) as error:
            raise UserError(
                f"Slurm does not take {first.label} ({reason_of(error)}): check partition= and "
                "options= of slurm, on a machine that has sbatch."
            ) from None


def _cancel_orphans(logs: Path) -> None:
    """Cancel the jobs that a killed command left in Slurm: they would train the same cells."""
    submitted = list(logs.glob("*_submitted.pkl"))
    if submitted:
        jobs = [file.name.partition("_")[0] for file in submitted]
        # It is silent about those that have ended.
        subprocess.run(["scancel", "--quiet", *jobs], check=False)
    for file in submitted:
        file.unlink()


@dataclass
class Work:
    """What Slurm runs: the processes of jobs on a node. Returns the last words of each, in their
    order: None where it did not fail."""

    jobs: tuple[Job, ...]
    folder: Path
    variables: Mapping[str, str]
    workers: tuple[WorkerProcess, ...] = ()

    def __call__(self) -> list[str | None]:
        """Run them at the same time, and append what they say."""
        logs = self.folder / "logs"

        # The signals of submitit are for this process alone: others inherit them blocked.
        signals = {signal.SIGUSR1, signal.SIGUSR2}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        # Started by this thread: a process whose parent's thread ends is killed.
        self.workers = tuple(
            WorkerProcess(
                job.module, job.request(self.folder), logs, job.name,
                environment=self.variables,
            )
            for job in self.jobs
        )  # fmt: skip
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)

        with ThreadPoolExecutor(len(self.jobs)) as threads:
            failures = [*threads.map(self._follow, self.jobs, self.workers)]
        if any(worker.process.returncode == -signal.SIGTERM for worker in self.workers):
            time.sleep(60)  # until Slurm kills this one, too, or queues the job again
        return failures

    def _follow(self, job: Job, worker: WorkerProcess) -> str | None:
        with _events_file(self.folder, job).open("a", encoding="utf-8") as events:
            return worker.follow(
                lambda *step: print(json.dumps(step), file=events, flush=True)
            )

    def checkpoint(self) -> Any:
        """The same again, when the processes have ended; a training goes on from its last state."""
        from submitit.helpers import DelayedSubmission

        for worker in self.workers:
            worker.process.terminate()  # all of them, before one is waited for
        for worker in self.workers:
            worker.end()
        return DelayedSubmission(replace(self, workers=()))


@dataclass
class _Running:
    """A Slurm job that is queued or at work. sent: of submitit. read: bytes of the events of each
    of its jobs, by name."""

    sent: Any
    jobs: Sequence[Job]
    folder: Path
    read: Counter[str] = field(default_factory=Counter)

    def tell(self, progress: Progress) -> None:
        """Pass on what its jobs have said since the last time."""
        for job in self.jobs:
            told = job.told(progress)
            # A job that is queued has said nothing.
            with (
                suppress(FileNotFoundError),
                _events_file(self.folder, job).open("rb") as stream,
            ):
                stream.seek(self.read[job.name])
                while (line := stream.readline()).endswith(b"\n"):
                    self.read[job.name] += len(line)
                    told(*json.loads(line))

    def end(self) -> list[tuple[Job, str | None]]:
        """Delete the events; how each job ended: its last words, or what Slurm made of it."""
        for job in self.jobs:
            _events_file(self.folder, job).unlink(missing_ok=True)

        if (error := self.sent.exception()) is None:
            return [*zip(self.jobs, self.sent.result(), strict=True)]
        failure = f"Slurm: {self.sent.state} ({reason_of(error)}), see {self.sent.paths.stderr}"
        return [(job, failure) for job in self.jobs]


def _events_file(folder: Path, job: Job) -> Path:
    return folder / "logs" / f"{job.name}.events"
