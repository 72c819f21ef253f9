"""Jobs on a Ray cluster, each a task with the GPU, the cores and the memory that it needs.

A task runs the job's process on its node and sends on what it says. Where the node or the task's
process dies, Ray runs the job again, on another node if need be: a training goes on after its last
state. The process dies with the task, so nothing of a run that was ended goes on writing. All nodes
have the same versions of the libraries, and see the folder of the run and the plugin files.
"""

from __future__ import annotations

import os
import platform
import signal
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from joblib import cpu_count

from smmd_bench.contracts import (
    Job,
    JobQueue,
    JobResult,
    Progress,
    non_negative,
    parameter,
)
from smmd_bench.errors import UserError, reason_of
from smmd_bench.experiment.provenance import library_versions
from smmd_bench.run.process import GpuExecutor, WorkerProcess, retry_alone

_SECONDS = 0.5
_CONNECTS_IN = 10.0
_PASSED_ON = ("SMMD_BENCH_", "HF_", "VLLM_")
"""Beginnings of the names of variables that a job has from the process that plans it."""


@dataclass(frozen=True)
class RayExecutor(GpuExecutor):
    """Tasks on a Ray cluster that runs already, or on this machine."""

    name: ClassVar[str] = "ray"

    address: str | None = parameter(
        None, "of a cluster that runs: auto, or HOST:PORT (none: Ray is started here)"
    )
    retries: int = parameter(
        3,
        "how often a job begins again whose node or process has died",
        check=non_negative,
    )

    @property
    def slots(self) -> int:
        """How many trainings the GPUs of the cluster have room for, or its cores."""
        nodes = _nodes(self._connect())
        gpus = sum(int(node.get("GPU", 0)) for node in nodes)
        on_gpus = gpus // self.gpus_per_cell * self.trainings_per_gpu
        return max(1, on_gpus or sum(int(node.get("CPU", 0)) for node in nodes))

    def run(
        self, queue: JobQueue, folder: Path, progress: Progress
    ) -> Iterator[JobResult]:
        """Run the jobs; logs go to `folder`/logs. As many are with Ray as the cluster has slots."""
        ray = self._connect()
        from ray.util.queue import Queue
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        this_node = NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )

        # The queue takes no core from the jobs, and does not die with another node.
        told = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": this_node})
        running: dict[Any, Job] = {}
        started: set[str] = set()

        def fits(job: Job) -> bool:
            # Ray gives a part of a GPU to whoever comes next: while trainings come, an engine would
            # never find a whole one.
            sent = [other for other in running.values() if other.name not in started]
            engine_waits = any(map(self.needs_whole_gpus, [*queue.waiting, *sent]))
            return not (self.shares_gpu(job) and engine_waits)

        task = ray.remote(max_calls=1, max_retries=self.retries)(_work)
        try:
            while True:
                while (
                    len(running) < self.slots and (job := queue.take(fits)) is not None
                ):
                    needs = self.reserve(job, _nodes(ray))
                    order = self.order(job, folder)
                    reference = task.options(**needs).remote(order, told)
                    running[reference] = job
                if not running:
                    return

                # Asked first: what a job says before it ends is told before its result.
                ended, _ = ray.wait([*running], timeout=_SECONDS)
                jobs = {job.name: job for job in running.values()}
                steps = told.get_nowait_batch(told.qsize())
                for name, step in steps:
                    started.add(name)
                    if step is not None:
                        jobs[name].told(progress)(*step)
                for reference in ended:
                    job = running.pop(reference)
                    started.discard(job.name)
                    failure = _failure(reference)
                    had_company = self.shares_gpu(job)
                    if not (had_company and retry_alone(job, failure, queue, progress)):
                        yield JobResult(job, failure)
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
            told.shutdown(force=True)

    def order(self, job: Job, folder: Path) -> Order:
        """A job of the run in a folder, as it is sent to a node."""
        passed_on = {k: v for k, v in os.environ.items() if k.startswith(_PASSED_ON)}
        return Order(
            job,
            folder.resolve(),
            environment={**passed_on, **self.environment(job, job.resources.threads)},
            versions=library_versions(),
        )

    def reserve(self, job: Job, nodes: list[dict[str, float]]) -> dict[str, Any]:
        """What Ray reserves for a job; never more main memory or cores than a node has. Raises
        UserError for more GPUs than any node has."""
        gpus_of_node = max(node.get("GPU", 0) for node in nodes)
        cores = max(node.get("CPU", 0) for node in nodes)
        memory = max(node.get("memory", 0) for node in nodes)
        needs = job.resources
        gpus: float = 0
        if gpus_of_node:
            gpus = needs.gpus * self.gpus_per_cell
        if self.shares_gpu(job):
            gpus /= self.trainings_per_gpu

        if gpus > gpus_of_node:
            raise UserError(
                f"{job.label} needs {gpus} GPUs, and no node has more than {gpus_of_node}."
            )
        return {
            "name": job.name,
            "num_gpus": gpus,
            "num_cpus": gpus or min(needs.threads or cores, cores),
            "memory": int(min(needs.memory_gb * 2**30, memory)),
        }

    def _connect(self) -> Any:
        """Ray, connected to the cluster; raises UserError where there is no Ray or no cluster."""
        # Ray would send statistics of its use to its makers.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
        try:
            import ray
        except ImportError:
            raise UserError(
                "Ray is not installed: pip install 'smmd-bench[ray]'."
            ) from None

        if ray.is_initialized():
            return ray

        handler = signal.getsignal(signal.SIGTERM)
        quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        try:
            if self.address is None:
                ray.init(
                    "local", num_cpus=cpu_count(), include_dashboard=False, **quiet
                )
                return ray
            host, colon, port = self.address.rpartition(":")
            # Ray itself would wait for minutes where nothing listens.
            if colon and "/" not in host:
                place = host, int(port)
                socket.create_connection(place, timeout=_CONNECTS_IN).close()
            ray.init(self.address, **quiet)
            return ray
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            raise UserError(
                f"There is no Ray cluster at {self.address} ({reason_of(error)}): start one with "
                "`ray start --head`, or leave out the address."
            ) from None
        finally:
            signal.signal(signal.SIGTERM, handler)  # Ray sets its own


@dataclass(frozen=True)
class Order:
    """A job as it is sent to a node: nothing in it needs this machine but the run's folder."""

    job: Job
    folder: Path
    environment: Mapping[str, str]
    versions: Mapping[str, str]

    def refusal(self) -> str | None:
        """Why this node cannot do it, in one sentence."""
        node = platform.node()
        differing = dict(self.versions.items() - library_versions().items())
        if differing:
            wanted = ", ".join(map(" ".join, sorted(differing.items())))
            return f"the node {node} has other versions: install {wanted}, as on the first one"
        if not self.folder.exists():
            return (
                f"the node {node} does not see {self.folder}: give --out a folder on a disk that "
                "all nodes share"
            )
        return None


def _nodes(ray: Any) -> list[dict[str, float]]:
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _work(order: Order, told: Any) -> str | None:
    """The task: run a job's process on this node; its last words where it failed."""
    if (refusal := order.refusal()) is not None:
        return refusal
    job, folder = order.job, order.folder
    request, logs = job.request(folder), folder / "logs"
    told.put_nowait((job.name, None))  # it has its GPU
    worker = WorkerProcess(
        job.module, request, logs, job.name, environment=order.environment
    )
    try:
        return worker.follow(lambda *step: told.put_nowait((job.name, step)))
    finally:
        worker.close()


def _failure(reference: Any) -> str | None:
    """How a task ended: the last words of its job, or why Ray gave it up."""
    import ray

    try:
        return ray.get(reference)  # type: ignore[no-any-return]
    except ray.exceptions.RayError as error:
        return f"Ray gave the job up: {reason_of(error)}"
