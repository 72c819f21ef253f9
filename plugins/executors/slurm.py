"""Jobs on a Slurm cluster, through submitit: one Slurm job for each training or engine.

All nodes see the folder of the run and this Python environment. A job that Slurm preempts, or whose
hours are over, is queued again: a training goes on after its last state. A job appends what it says
to `logs/NAME.events`, which this process reads; Slurm's own output is in `logs/slurm`.
"""

import json
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from smmd_bench.contracts import Job, JobQueue, JobResult, Progress, parameter, positive
from smmd_bench.errors import UserError, reason_of
from smmd_bench.run.process import SeveralGpus, WorkerProcess


@dataclass(frozen=True)
class SlurmExecutor(SeveralGpus):
    """A Slurm job for each training or engine, on a folder that all nodes see."""

    name: ClassVar[str] = "slurm"

    partition: str | None = parameter(None, "of the cluster (none: its default)")
    hours: float = parameter(
        24.0, "of a job, which is then queued again", check=positive
    )
    cpus: int = parameter(8, "cores of a job", check=positive)
    memory_gb: float = parameter(64.0, "main memory of a job", check=positive)
    jobs: int = parameter(
        64, "jobs that are queued or run at the same time", check=positive
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
        """`jobs`: Slurm knows better when each of them runs."""
        return self.jobs

    def run(
        self, queue: JobQueue, folder: Path, progress: Progress
    ) -> Iterator[JobResult]:
        """Run the jobs; logs go to `folder`/logs."""
        running: list[_Running] = []
        try:
            while True:
                while len(running) < self.slots and (job := queue.take()) is not None:
                    events = folder / "logs" / f"{job.name}.events"
                    running.append(_Running(job, self._submit(job, folder), events))
                if not running:
                    return

                time.sleep(1)
                for attempt in [*running]:
                    # asked first: what it says before that is told
                    is_done = attempt.sent.done()
                    attempt.tell(attempt.job.told(progress))
                    if is_done:
                        attempt.events.unlink(missing_ok=True)
                        running.remove(attempt)
                        yield JobResult(attempt.job, attempt.failure())
        finally:
            for attempt in running:
                attempt.sent.cancel(check=False)

    def _submit(self, job: Job, folder: Path) -> Any:
        """The job of submitit. Raises UserError where there is no submitit or no Slurm."""
        try:
            import submitit
        except ImportError:
            raise UserError(
                "submitit is not installed: pip install 'smmd-bench[slurm]'."
            ) from None

        pairs = (option.lstrip("-").split("=", 1) for option in self.options.split())
        # submitit spells the options of sbatch with underscores.
        options = {name.replace("-", "_"): value for name, value in pairs}

        # By default submitit gives a job up after three ends of its hours.
        restarts = {f"{self.cluster}_max_num_timeout": 100}
        try:
            executor = submitit.AutoExecutor(
                folder / "logs" / "slurm", cluster=self.cluster, **restarts
            )
            executor.update_parameters(
                name=job.name,
                timeout_min=max(1, round(60 * self.hours)),
                gpus_per_node=job.resources.gpus * self.gpus_per_cell,
                cpus_per_task=self.cpus,
                mem_gb=self.memory_gb,
                slurm_partition=self.partition,
                slurm_additional_parameters=options,
            )
            return executor.submit(
                Work(job, folder.resolve(), self.environment(job, None))
            )
        except (RuntimeError, submitit.core.utils.FailedJobError) as error:
            raise UserError(
                f"Slurm does not take {job.label} ({reason_of(error)}): check partition= and "
                "options= of slurm, on a machine that has sbatch."
            ) from None


@dataclass
class Work:
    """What Slurm runs: the job's process on its node; returns its last words where it failed."""

    job: Job
    folder: Path
    variables: Mapping[str, str]
    worker: WorkerProcess | None = None

    def __call__(self) -> str | None:
        """Run it, and append what it says."""
        job = self.job
        logs = self.folder / "logs"
        request = job.request(self.folder)

        # The signals of submitit are for this process alone: the other one inherits them blocked.
        signals = {signal.SIGUSR1, signal.SIGUSR2}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        worker = WorkerProcess(
            job.module, request, logs, job.name, environment=self.variables
        )
        self.worker = worker
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)

        with (logs / f"{job.name}.events").open("a", encoding="utf-8") as events:
            failure = worker.follow(
                lambda *step: print(json.dumps(step), file=events, flush=True)
            )
        if worker.process.returncode == -signal.SIGTERM:
            time.sleep(60)  # until Slurm kills this one, too, or queues the job again
        return failure

    def checkpoint(self) -> Any:
        """The same again, when the process has ended; a training goes on from its last state."""
        from submitit.helpers import DelayedSubmission

        if self.worker is not None:
            self.worker.end()
        return DelayedSubmission(replace(self, worker=None))


@dataclass
class _Running:
    """A job that is queued or at work. sent: of submitit. read: bytes of its events."""

    job: Job
    sent: Any
    events: Path
    read: int = 0

    def tell(self, progress: Progress) -> None:
        with suppress(FileNotFoundError), self.events.open("rb") as stream:
            stream.seek(self.read)
            while (line := stream.readline()).endswith(b"\n"):
                self.read += len(line)
                progress(*json.loads(line))

    def failure(self) -> str | None:
        """How it ended: the last words of its process, or what Slurm made of it."""
        if (error := self.sent.exception()) is None:
            return self.sent.result()  # type: ignore[no-any-return]
        return f"Slurm: {self.sent.state} ({reason_of(error)}), see {self.sent.paths.stderr}"
