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

import pytest

COMMAND = str(Path(sys.executable).parent / "smmd-bench")
SMALL = "--train-examples 512 --epochs 2 --validation-examples 60 --test-examples 80"


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
        done = self(words, *more, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def kill_when(self, condition, words, *more):
        """Start the command and SIGKILL it (and nothing else) as soon as the condition holds."""
        process = subprocess.Popen(
            [COMMAND, *shlex.split(words), *map(str, more)],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 300
        while not condition():
            assert process.poll() is None, "the command ended before it could be killed"
            assert time.monotonic() < deadline, "the condition never held"
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="session")
def smmd_bench(tmp_path_factory):
    """The command, with a data cache that all runs of this folder share."""
    return CommandLine({**os.environ, "SMMD_BENCH_CACHE": str(tmp_path_factory.mktemp("cache"))})


@pytest.fixture(scope="session")
def finish(smmd_bench):
    """`finish(words, *more)`: a command that ends well."""
    return smmd_bench.finish


def cells(run):
    """The cell folders of a run, by the last part of the model's name and the loss."""
    found = {}
    for file in run.glob("cells/*/cell.json"):
        cell = json.loads(file.read_text())
        if "source" not in cell:  # another cell tests what that one trained
            found[Path(cell["model"]).name, cell["loss"]] = file.parent
    return found


def content(folder, name):
    """A JSON file."""
    return json.loads((folder / name).read_text())
