"""`smmd-bench` in this process: torch and vLLM are imported once for all runs of a worker."""

import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner

from smmd_bench.cli import cli
from smmd_bench.contracts import JobQueue, JobResult, Progress
from smmd_bench.plugin_system import registry
from smmd_bench.publishing import style
from smmd_bench.publishing.write_reports import FIGURE_METADATA
from smmd_bench.storage.files import write_json
from tests.conftest import forget_loaded, separate_plugins


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it printed."""

    status: int
    stdout: str
    stderr: str
    output: str  # both, as they came


def call(line: str, folder: Path, **environment: str) -> Said:
    """Run `smmd-bench` with a line of words in `folder`; everything is afterwards as it was.

    It raises what the command raises. Jobs run here, too, with `--executor=in_process`.
    """
    with as_a_process(folder, **environment), coarse_figures():
        result = CliRunner().invoke(cli, line, standalone_mode=False, input="")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Said(
        int(result.return_value or 0), result.stdout, result.stderr, result.output
    )


@contextlib.contextmanager
def coarse_figures() -> Iterator[None]:
    """Figures of few pixels, and none as PDF or SVG: nobody looks at them."""
    text = style.STYLE.read_text().replace("savefig.dpi: 160", "savefig.dpi: 25")
    with (
        tempfile.NamedTemporaryFile("w", suffix=".mplstyle") as file,
        pytest.MonkeyPatch.context() as patch,
    ):
        file.write(text)
        file.flush()
        patch.setattr(style, "STYLE", Path(file.name))
        patch.delitem(FIGURE_METADATA, "pdf")
        patch.delitem(FIGURE_METADATA, "svg")
        yield


@contextlib.contextmanager
def as_a_process(folder: Path, **environment: str) -> Iterator[None]:
    """The working folder, the environment and the registry, as a new process has them."""
    try:
        with (
            separate_plugins(),
            contextlib.chdir(folder),
            mock.patch.dict(os.environ, environment),
        ):
            registry._from_files["executors"]["in_process"] = InProcess
            yield
    finally:
        # What was loaded may follow from the environment.
        forget_loaded()
        registry.engine_identity.cache_clear()


@dataclass(frozen=True)
class InProcess:
    """An executor: `python -m MODULE`, without the `python`."""

    name = "in_process"

    slots = 1

    def run(
        self, queue: JobQueue, folder: Path, progress: Progress
    ) -> Iterator[JobResult]:
        """Run the jobs; what they print goes to `folder`/logs."""
        while (job := queue.take()) is not None:
            stem = folder / "logs" / job.name
            write_json(stem.with_suffix(".json"), job.request(folder))
            yield JobResult(job, _work(stem, job.module, job.told(progress)))


def _work(stem: Path, module: str, progress: Progress) -> str | None:
    events = stem.with_suffix(".events")
    arguments, interrupt = sys.argv, signal.getsignal(signal.SIGINT)
    writing = os.open(events, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    sys.argv = ["worker", str(stem.with_suffix(".json")), str(writing)]

    try:
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(stem.with_suffix(".log").open("w"))
            stack.enter_context(contextlib.redirect_stdout(log))
            stack.enter_context(contextlib.redirect_stderr(log))
            failed = import_module(module).main()
    finally:
        sys.argv = arguments
        signal.signal(signal.SIGINT, interrupt)

    events_read = [
        json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()
    ]
    for event in events_read:
        if event["event"] == "progress":
            progress(event["what"], event["done"], event["total"])
    failures = [event["message"] for event in events_read if event["event"] == "failed"]
    return failures[-1] if failures else "no reason given" if failed else None
