"""A process that works for this one: both ends of the pipe on which it reports, JSON lines."""

import contextlib
import ctypes
import faulthandler
import gc
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TextIO

from ..contracts import Job, JobQueue, Progress, parameter, positive
from ..contracts.executor import PROCESSES, SHARES_GPU, STALL, STRATEGY
from ..errors import UserError
from ..plugin_system.registry import load_plugin_file
from ..storage.files import read_json, write_json
from .run_directory import record_failure

_GRACE = 20.0  # seconds; Slurm gives 30
_STALLED = "Timeout ("  # as faulthandler says it


class WorkerProcess:
    """`python -m MODULE REQUEST.json EVENTS_FD`, seen from the process that starts it.

    What libraries print goes to the log. The process dies with this one. `name`: of the request and
    of the log in the folder `logs`. environment: variables in place of this process's.
    """

    def __init__(
        self,
        module: str,
        request: Mapping[str, Any],
        logs: Path,
        name: str,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.log = logs / f"{name}.log"
        file = logs / f"{name}.json"
        write_json(file, request)
        reading, writing = os.pipe()

        # Threads that spin while they wait make a shared machine several times slower.
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, str(file), str(writing)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[writing],
                env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ, **(environment or {})},
            )

        # The end that writes is the process's own: without it, the last event is an end of file.
        os.close(writing)
        self._events = os.fdopen(reading, encoding="utf-8")
        self._failure: str | None = None
        self.found: dict[str, Any] = {}  # of a row of `smmd-bench overhead`

    def hear(self) -> dict[str, Any] | None:
        """Read the next event; None: there will be none."""
        line = self._events.readline()
        # A process that is killed may leave half a line.
        event = dict(json.loads(line)) if line.endswith("\n") else None
        if event is not None and event["event"] == "failed":
            self._failure = event["message"]
        self.found = (event or {}).get("found", self.found)
        return event

    def follow(self, progress: Progress) -> str | None:
        """Pass the progress on until the process ends; how it ended, as `describe_end` says it."""
        while (event := self.hear()) is not None:
            if event["event"] == "progress":
                progress(event["what"], event["done"], event["total"])
        return self.describe_end()

    def describe_end(self) -> str | None:
        """Describe how the process ended, in its own words or the last line of its log; None:
        well."""
        code = self.process.wait()
        if code < 0:
            name = signal.Signals(-code).name
            # The kernel kills by SIGKILL what takes the last memory.
            hint = " (out of memory?)" if name == "SIGKILL" else ""
            return f"the process was killed by {name}{hint}, see {self.log}"

        # Its own words say more than its status.
        if self._failure is not None:
            return self._failure
        if not code:
            return None

        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        if any(line.startswith(_STALLED) for line in lines):
            return f"the process said nothing for too long (--stall) and was ended, see {self.log}"

        # A library that fails often prints blank lines after what it says.
        last = next(
            (line.strip(" .") for line in reversed(lines) if line.strip()), "no output"
        )
        return f"the process ended with status {code} ({last[:300]}), see {self.log}"

    def end(self) -> None:
        """End the process, which a training survives; kill it where it does not end by itself."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_GRACE)
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End the process, and hear nothing more of it."""
        self.end()
        self._events.close()


@dataclass(frozen=True)
class GpuExecutor:
    """The options of an executor whose jobs have several GPUs each, or a part of one."""

    gpus_per_cell: int = parameter(
        1,
        "GPUs of a training and of an engine; on a CPU processes of a training",
        check=positive,
    )
    strategy: Literal["ddp", "fsdp2"] = parameter(
        "ddp",
        "fsdp2 spreads the weights over the GPUs of a cell: for models that one cannot train",
    )
    trainings_per_gpu: int = parameter(
        1, "trainings that share a GPU; an engine never does", check=positive
    )

    def __post_init__(self) -> None:
        if self.strategy == "fsdp2" and self.gpus_per_cell == 1:
            raise UserError(
                "strategy=fsdp2 needs several GPUs: give gpus_per_cell=2 or more, too."
            )
        if self.trainings_per_gpu > 1 and self.gpus_per_cell > 1:
            raise UserError(
                "trainings_per_gpu=... shares a GPU, and gpus_per_cell=... needs several of them: "
                "leave one out."
            )

    def shares_gpu(self, job: Job) -> bool:
        """Whether others may have the job's GPU, too: a training, unless it runs alone."""
        may_share = self.trainings_per_gpu > 1 and bool(job.resources.gpus)
        return may_share and job.stage == "train" and job.resources.memory_gb < math.inf

    def needs_whole_gpus(self, job: Job) -> bool:
        """Whether the job uses GPUs that no other may have, as an engine does."""
        return bool(job.resources.gpus) and not self.shares_gpu(job)

    def environment(self, job: Job, threads: int | None) -> dict[str, str]:
        """Make that of a job with so many threads, and with several GPUs or a part of one if it
        uses any."""
        variables = {}
        if self.shares_gpu(job):
            variables[SHARES_GPU] = "1"
        if threads is not None:
            variables["OMP_NUM_THREADS"] = str(threads)
        if self.gpus_per_cell > 1 and job.resources.gpus:
            variables[PROCESSES] = str(self.gpus_per_cell)
            variables[STRATEGY] = self.strategy
        return variables


def retry_alone(
    job: Job, failure: str | None, queue: JobQueue, progress: Progress
) -> bool:
    """Queue a job again that ended beside others as where memory ends: alone it may have enough.
    Returns whether it did."""
    if failure is None or "SIGKILL" not in failure:
        return False
    progress(f"{job.label}: {failure}; it runs again, alone.", 0, 0)
    queue.waiting.append(run_alone(job))
    return True


def run_alone(job: Job) -> Job:
    """The same job, which needs all memory and so shares no GPU."""
    return replace(job, resources=replace(job.resources, memory_gb=math.inf))


class Events:
    """Writes events; if nobody reads them, the process ends."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.stall = stream, 0.0
        self.last: dict[str, float] = {}

    def watch(self) -> None:
        """End this process, with its stack in the log, once it says nothing for too long."""
        self.stall = 60 * float(os.environ.get(STALL) or 0)
        if self.stall:
            faulthandler.dump_traceback_later(self.stall, exit=True)

    def progress(self, what: str, done: int, total: int) -> None:
        """Send at most five events a second for each `what`, and always the last."""
        moment = time.monotonic()
        if done < total and moment - self.last.get(what, 0.0) < 0.2:
            return
        self.last[what] = moment

        # A second call begins the time anew.
        if self.stall:
            faulthandler.dump_traceback_later(self.stall, exit=True)
        self.send({"event": "progress", "what": what, "done": done, "total": total})

    def send(self, event: dict[str, object]) -> None:
        """Write one JSON line."""
        try:
            print(json.dumps(event), file=self.stream, flush=True)
        except BrokenPipeError:
            # Nobody is there to hear of an error either.
            os._exit(1)

    def record(
        self, run: Path, failures: Mapping[str, BaseException], stage: str
    ) -> int:
        """Write each failed/KEY.json of a run; the exit status."""
        for key, failure in failures.items():
            record_failure(run, key, stage, failure)
            self.send(
                {"event": "failed", "message": str(failure) or type(failure).__name__}
            )
        return 1 if failures else 0


@contextlib.contextmanager
def start() -> Iterator[tuple[dict[str, Any], Events]]:
    """Give the request and the events of this process, where a WorkerProcess started it. Ctrl-C on
    a terminal is left to its parent, which ends it: it would record a failure that is none."""
    gc.set_threshold(50_000)  # as the command line does
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # No process goes on where the command that started it was killed.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

    request = read_json(Path(sys.argv[1]))
    assert request is not None
    with os.fdopen(int(sys.argv[2]), "w", encoding="utf-8") as stream:
        for file in request["plugins"]:
            load_plugin_file(Path(file))
        yield request, Events(stream)

    faulthandler.cancel_dump_traceback_later()
