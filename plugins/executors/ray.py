"""Jobs on a Ray cluster, each a task with the GPU, the cores and the memory that it needs.

A task runs the job's process on its node and sends on what it says. Where the node or the task's
process dies, Ray runs the job again, on another node if need be: a training goes on after its last
state. The process dies with the task, so nothing of a run that was ended goes on writing. All nodes
have the same versions of the libraries and see the folder of the run; plugin files are sent.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from smmd_bench.contracts import (
    Job,
    JobQueue,
    JobResult,
    PerCell,
    Progress,
    non_negative,
    parameter,
    positive,
)
from smmd_bench.errors import UserError
from smmd_bench.run.machine import share_of_cores
from smmd_bench.run.process import WorkerProcess

from ._ray_order import Order

_SECONDS = 0.5
_CONNECTS_IN = 10.0
_Resources = dict[str, float]


@dataclass(frozen=True)
class RayExecutor:
    """Tasks on a Ray cluster that runs already, or on this machine."""

    name: ClassVar[str] = "ray"

    address: str | None = parameter(
        None, "of a cluster that runs: auto, or HOST:PORT (none: Ray is started here)"
    )
    retries: int = parameter(
        3, "how often a job begins again whose node or process has died", check=non_negative
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
        """The GPUs of the cluster, or its cores."""
        nodes = self._nodes()
        count = sum(int(node.get("GPU", 0)) for node in nodes)
        count //= self.gpus_per_cell
        return max(1, count or sum(int(node.get("CPU", 0)) for node in nodes))

    def run(self, queue: JobQueue, folder: Path, progress: Progress) -> Iterator[JobResult]:
        """Run the jobs; logs go to `folder`/logs. As many are with Ray as the cluster has slots."""
        ray = self._connect()
        from ray.util.queue import Queue
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        told = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here})
        running: dict[Any, Job] = {}
        task = ray.remote(max_calls=1, max_retries=self.retries)(_work)
        try:
            while True:
                while len(running) < self.slots and (job := queue.take()) is not None:
                    needs = _options(job, self._nodes(), self.gpus_per_cell)
                    order = Order.of(job, folder, self._per_cell)
                    running[task.options(**needs).remote(order, told)] = job
                if not running:
                    return
                ended, _ = ray.wait([*running], timeout=_SECONDS)
                jobs = {job.name: job for job in running.values()}
                for name, event in told.get_nowait_batch(told.qsize()):
                    jobs[name].told(progress)(event["what"], event["done"], event["total"])
                for reference in ended:
                    yield JobResult(running.pop(reference), _failure(reference))
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
            told.shutdown(force=True)

    def _connect(self) -> Any:
        """Ray, connected to the cluster; raises UserError where there is no Ray or no cluster."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")
        try:
            import ray
        except ImportError:
            raise UserError("Ray is not installed: pip install 'smmd-bench[ray]'.") from None
        if ray.is_initialized():
            return ray
        before = signal.getsignal(signal.SIGTERM)
        try:
            return self._start(ray)
        finally:
            signal.signal(signal.SIGTERM, before)  # Ray sets its own

    def _start(self, ray: Any) -> Any:
        quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if self.address is None:
            cores = max(1, int(share_of_cores()))
            ray.init("local", num_cpus=cores, include_dashboard=False, **quiet)
            return ray
        try:
            host, colon, port = self.address.rpartition(":")
            if colon and "/" not in host:  # Ray itself would wait for minutes
                socket.create_connection((host, int(port)), timeout=_CONNECTS_IN).close()
            ray.init(self.address, **quiet)
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            reason = str(error).split("\n")[0].rstrip(".")
            raise UserError(
                f"There is no Ray cluster at {self.address} ({reason}): start one with `ray start "
                "--head`, or leave out the address."
            ) from None
        return ray

    def _nodes(self) -> list[_Resources]:
        """What each node that is alive has."""
        ray = self._connect()
        return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _options(job: Job, nodes: list[_Resources], per_cell: int = 1) -> dict[str, Any]:
    """What Ray reserves for a job; never more main memory or cores than a node has.

    Raises UserError for more GPUs than any node has.
    """
    most = {name: max(node.get(name, 0) for node in nodes) for name in ("GPU", "CPU", "memory")}
    needs = job.resources
    gpus = needs.gpus * per_cell if most["GPU"] else 0
    if gpus > most["GPU"]:
        raise UserError(f"{job.label} needs {gpus} GPUs, and no node has more than {most['GPU']}.")
    return {
        "name": job.name,
        "num_gpus": gpus,
        "num_cpus": gpus or min(needs.threads or most["CPU"], most["CPU"]),
        "memory": int(min(needs.memory_gb * 2**30, most["memory"])),
    }


def _work(order: Order, told: Any) -> str | None:
    """The task: run a job's process on this node; its last words where it failed."""
    if (refusal := order.refusal()) is not None:
        return refusal
    with order.plugin_files() as files:
        request, logs = {**order.request, "plugins": files}, order.folder / "logs"
        environment = order.environment
        worker = WorkerProcess(order.module, request, logs, order.name, environment=environment)
        try:
            while (event := worker.hear()) is not None:
                if event["event"] == "progress":
                    told.put_nowait((order.name, event))
            return worker.ending()
        finally:
            worker.close()


def _failure(reference: Any) -> str | None:
    """How a task ended: the last words of its job, or why Ray gave it up."""
    import ray

    try:
        return ray.get(reference)  # type: ignore[no-any-return]
    except ray.exceptions.RayError as error:
        return f"Ray gave the job up: {str(error).strip().splitlines()[0].rstrip('.')}"
