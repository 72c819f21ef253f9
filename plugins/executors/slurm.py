"""Jobs on a Slurm cluster, through submitit: one Slurm job for each training or engine.

All nodes see the folder of the run and this Python environment. A job that Slurm preempts, or whose
hours are over, is queued again: a training goes on after its last state. A job appends what it says
to `logs/NAME.events`, which this process reads; Slurm's own output is in `logs/slurm`.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from smmd_bench.contracts import Job, JobQueue, JobResult, PerCell, Progress, parameter, positive
from smmd_bench.errors import UserError
from smmd_bench.run.process import WorkerProcess, environment_of

_SECONDS = 1.0
_KILLED_IN = 60.0
"""Seconds after SIGTERM in which Slurm kills a job or queues it again."""
_ENDED_IN = 20.0
"""Seconds for a process to end; submitit leaves 90 before the end."""
_TIMEOUTS = 100


@dataclass(frozen=True)
class SlurmExecutor:
    """A Slurm job for each training or engine, on a folder that all nodes see."""

    name: ClassVar[str] = "slurm"

    partition: str | None = parameter(None, "of the cluster (none: its default)")
    hours: float = parameter(24.0, "of a job, which is then queued again", check=positive)
    gpus_per_cell: int = parameter(1, "GPUs of a training and of an engine", check=positive)
    strategy: Literal["ddp", "fsdp2"] = parameter(
        "ddp", "fsdp2 spreads the weights over the GPUs of a cell: for models that one cannot train"
    )
    cpus: int = parameter(8, "cores of a job", check=positive)
    memory_gb: float = parameter(64.0, "main memory of a job", check=positive)
    jobs: int = parameter(64, "jobs that are queued or run at the same time", check=positive)
    options: str | None = parameter(None, "more of sbatch: NAME=VALUE, parted by spaces")
    cluster: Literal["slurm", "local"] = parameter("slurm", "local: processes here, for a trial")

    def __post_init__(self) -> None:
        _ = self._per_cell, self._more

    @property
    def _per_cell(self) -> PerCell:
        return PerCell(self.gpus_per_cell, self.strategy)

    @property
    def _more(self) -> dict[str, str]:
        pairs = [option.partition("=") for option in (self.options or "").split()]
        if not all(name and value for name, _, value in pairs):
            raise UserError(f"options={self.options}: give NAME=VALUE, parted by spaces.")
        return {name.lstrip("-"): value for name, _, value in pairs}

    @property
    def slots(self) -> int:
        """`jobs`: Slurm knows better when each of them runs."""
        return self.jobs

    def run(self, queue: JobQueue, folder: Path, progress: Progress) -> Iterator[JobResult]:
        """Run the jobs; logs go to `folder`/logs."""
        running: list[_Running] = []
        try:
            while True:
                while len(running) < self.slots and (job := queue.take()) is not None:
                    running.append(_Running(job, folder, self._submit(job, folder)))
                if not running:
                    return
                time.sleep(_SECONDS)
                for one in running:
                    one.hear(progress)
                for one in [one for one in running if one.sent.done()]:
                    one.hear(progress)
                    one.events.unlink(missing_ok=True)
                    running.remove(one)
                    yield JobResult(one.job, one.failure())
        finally:
            for one in running:
                one.sent.cancel(check=False)

    def _submit(self, job: Job, folder: Path) -> Any:
        """The job of submitit. Raises UserError where there is no submitit or no Slurm."""
        try:
            import submitit
        except ImportError:
            raise UserError("submitit is not installed: pip install 'smmd-bench[slurm]'.") from None
        logs = folder.resolve() / "logs"
        timeouts = {f"{self.cluster}_max_num_timeout": _TIMEOUTS}
        try:
            executor = submitit.AutoExecutor(logs / "slurm", cluster=self.cluster, **timeouts)
            executor.update_parameters(
                name=job.name,
                timeout_min=max(1, round(60 * self.hours)),
                gpus_per_node=job.resources.gpus * self.gpus_per_cell,
                cpus_per_task=self.cpus,
                mem_gb=self.memory_gb,
                slurm_partition=self.partition,
                slurm_additional_parameters=self._more,
            )
            environment = environment_of(job, None, self._per_cell)
            return executor.submit(
                Work(job.module, job.request(folder), logs, job.name, environment)
            )
        except (RuntimeError, submitit.core.utils.FailedJobError) as error:
            reason = str(error).strip().split("\n")[0].rstrip(".")
            raise UserError(
                f"Slurm does not take {job.label} ({reason}): check partition= and options= of "
                "slurm, on a machine that has sbatch."
            ) from None


@dataclass
class Work:
    """What Slurm runs: the job's process on its node; returns its last words where it failed."""

    module: str
    request: Mapping[str, Any]
    logs: Path
    name: str
    environment: Mapping[str, str]
    worker: WorkerProcess | None = None

    def __call__(self) -> str | None:
        """Run it, and append what it says."""
        # the signals of submitit are for this process alone: the other one inherits them blocked
        ours = {signal.SIGUSR1, signal.SIGUSR2}
        signal.pthread_sigmask(signal.SIG_BLOCK, ours)
        self.worker = WorkerProcess(
            self.module, self.request, self.logs, self.name, environment=self.environment
        )
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ours)
        with (self.logs / f"{self.name}.events").open("a", encoding="utf-8") as events:
            while (event := self.worker.hear()) is not None:
                print(json.dumps(event), file=events, flush=True)
        failure = self.worker.ending()
        if self.worker.process.returncode == -signal.SIGTERM:
            time.sleep(_KILLED_IN)
        return failure

    def checkpoint(self) -> Any:
        """The same again, when the process has ended; a training goes on from its last state."""
        from submitit.helpers import DelayedSubmission

        if self.worker is not None:
            self.worker.ask_to_end()
            with suppress(subprocess.TimeoutExpired):
                self.worker.process.wait(_ENDED_IN)
        again = Work(self.module, self.request, self.logs, self.name, self.environment)
        return DelayedSubmission(again)


@dataclass
class _Running:
    """A job that is queued or at work. sent: of submitit. read: bytes of its events."""

    job: Job
    folder: Path
    sent: Any
    read: int = 0

    @property
    def events(self) -> Path:
        return self.folder / "logs" / f"{self.job.name}.events"

    def hear(self, progress: Progress) -> None:
        with suppress(FileNotFoundError), self.events.open("rb") as stream:
            stream.seek(self.read)
            for line in stream:
                if not line.endswith(b"\n"):
                    break
                self.read += len(line)
                event = json.loads(line)
                if event["event"] == "progress":
                    self.job.told(progress)(event["what"], event["done"], event["total"])

    def failure(self) -> str | None:
        """How it ended: the last words of its process, or what Slurm made of it."""
        if (error := self.sent.exception()) is None:
            return self.sent.result()  # type: ignore[no-any-return]
        reason = str(error).strip().splitlines()[0].rstrip(".")
        return f"Slurm ended the job ({self.sent.state}: {reason}), see {self.sent.paths.stderr}"
