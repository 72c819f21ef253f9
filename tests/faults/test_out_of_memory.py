"""What the system ends for want of memory, a job or the command, the same command finishes."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from smmd_bench.storage.files import read_json

GROUPS = Path("/sys/fs/cgroup/memory")  # the first version: root may make groups there
pytestmark = [pytest.mark.engine, pytest.mark.slow]
WORDS = (
    "train-eval --task arithmetic[level=easy,operations=1] --losses ce --no-base --engine "
    "transformers --executor local[workers=1,threads=1] --train-examples 16 "
    "--validation-examples 4 --test-examples 4 --epochs 1 --out run --quiet"
)


@pytest.fixture
def group(tmp_path):
    """A group of processes that may use less memory than a training needs."""
    folder = GROUPS / f"smmd-bench-{tmp_path.name}"
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text("600M")
    except OSError as error:
        pytest.skip(f"no group of processes can be made ({error.strerror})")
    yield folder
    folder.rmdir()


def run(folder, group=None):
    command = [str(Path(sys.executable).parent / "smmd-bench"), *WORDS.split()]
    join = f"echo $$ > {group}/cgroup.procs && " if group else ""
    shell = ["bash", "-c", f'{join}exec "$@"', "bash", *command]
    return subprocess.run(shell, cwd=folder, capture_output=True, text=True)


def test_it_is_recorded_and_the_same_command_goes_on(group, tmp_path):
    first = run(tmp_path, group)
    killed = int((group / "memory.oom_control").read_text().split()[-1])
    assert killed, "the group had enough memory"
    if first.returncode != -signal.SIGKILL:  # the job was, as a rule the larger process
        assert first.returncode == 1
        assert "was killed by SIGKILL (out of memory?)" in first.stderr
    assert "Traceback" not in first.stderr
    assert run(tmp_path).returncode == 0
    (cell,) = (tmp_path / "run" / "cells").iterdir()
    assert read_json(cell / "metrics.json")
