"""Real runs of the command line: real Trainer, real vLLM, real files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).parent / "smmd-bench")
SMALL = (
    "--train-examples",
    "512",
    "--epochs",
    "2",
    "--validation-examples",
    "60",
    "--test-examples",
    "80",
)


@dataclass(frozen=True)
class CommandLine:
    """Runs `smmd-bench` with a data cache of its own."""

    environment: dict[str, str]

    def __call__(
        self, *arguments: str, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *arguments], capture_output=True, text=True, env=self.environment, cwd=cwd
        )

    def kill_when(self, condition: Callable[[], bool], *arguments: str) -> None:
        """Start the command and SIGKILL it (and nothing else) as soon as the condition holds."""
        process = subprocess.Popen(
            [COMMAND, *arguments],
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
def smmd_bench(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    cache = tmp_path_factory.mktemp("cache")
    return CommandLine({**os.environ, "SMMD_BENCH_CACHE": str(cache)})
