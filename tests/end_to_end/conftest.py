"""Runs from the command line: real Trainer, real vLLM, real files."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

import smmd_bench as sb

COMMAND = str(Path(sys.executable).parent / "smmd-bench")
SMALL = "--train-examples 256 --epochs 2 --validation-examples 60 --test-examples 80"


@dataclass(frozen=True)
class CommandLine:
    """Runs `smmd-bench` in processes of its own, with a data cache of its own."""

    environment: dict[str, str]

    def __call__(self, words, *more, **environment):
        command = [COMMAND, *shlex.split(words), *map(str, more)]
        environment = {**self.environment, **environment}
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    def finish(self, words, *more, **environment):
        """A command that ends well."""
        outcome = self(words, *more, **environment)
        assert outcome.returncode == 0, outcome.stdout + outcome.stderr
        return outcome

    def start(self, words, *more):
        """The process of the command, which may be killed."""
        command = [COMMAND, *shlex.split(words), *map(str, more)]
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(command, env=self.environment, **output)

    def kill_when(self, condition, words, *more):
        """Start the command, and SIGKILL it alone when the condition holds; what it had started."""
        process = self.start(words, *more)
        deadline = time.monotonic() + 300
        while not condition():
            assert process.poll() is None, process.stdout.read()
            assert time.monotonic() < deadline, "the condition never held"
            time.sleep(0.01)
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return started


@pytest.fixture(scope="session")
def smmd_bench(tmp_path_factory):
    """The command, with a data cache that all runs of this folder share."""
    return CommandLine(
        {**os.environ, "SMMD_BENCH_CACHE": str(tmp_path_factory.mktemp("cache"))}
    )


@pytest.fixture(scope="session")
def finish(smmd_bench):
    """`finish(words, *more)`: a command that ends well."""
    return smmd_bench.finish


def cells(run):
    """What is stored of the cells, by the last part of the model's name and the loss; without
    those that test what another one trained."""
    frames = sb.read_run(run)
    return {
        (Path(said["model"]).name, said["loss"]): frames.current(said["address"])
        for said in frames.rows
        if "source" not in said
    }


def requests(run):
    """What each start of an engine was asked to serve: what the manifest says of its cells."""
    return [
        json.loads(file.read_text())["cells"] for file in run.glob("logs/decode-*.json")
    ]


def inodes(run, pattern):
    """The files, and what changes when one is made again."""
    return {file: file.stat().st_ino for file in run.glob(pattern)}
