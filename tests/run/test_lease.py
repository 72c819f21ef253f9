"""Who has a cell, among processes of one machine and of several."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from smmd_bench.run import lease
from smmd_bench.run.lease import Leases

HOLD = """
import sys, time
from pathlib import Path
from smmd_bench.run.lease import Leases
leases = Leases(Path(sys.argv[1]))
print(leases.take("cell"), flush=True)
time.sleep(600)
"""


@contextmanager
def holding(run, code=HOLD):
    """Another process, which has the cell; it ends with the test."""
    command = [sys.executable, "-c", code, str(run)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "True\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def another(tmp_path):
    with holding(tmp_path) as process:
        yield process


def test_a_cell_that_another_process_has_is_not_taken_until_that_is_dead(tmp_path, another):
    with Leases(tmp_path) as mine:
        assert not mine.take("cell")
        assert mine.take("other")
        assert mine.holder("cell") == f"process {another.pid} on {os.uname().nodename}"
        another.kill()
        another.wait()
        assert mine.holder("cell") is None
        assert mine.take("cell")
        assert mine.take("cell")
    assert {file.name for file in tmp_path.glob("leases/*")} == {"cell.2.json", "other.1.json"}


def test_what_is_given_back_can_be_taken(tmp_path):
    with Leases(tmp_path) as mine:
        assert mine.take("cell")
    with Leases(tmp_path) as mine:
        assert mine.holder("cell") is None
        assert mine.take("cell")


def test_a_lease_of_another_machine_dies_when_it_is_no_longer_renewed(tmp_path):
    file = tmp_path / "leases" / "cell.1.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"node": "far", "machine": "far 1", "pid": 1, "started": 0.0}))
    with Leases(tmp_path) as mine:
        assert not mine.take("cell")
        assert mine.holder("cell") == "process 1 on far"
        long_ago = time.time() - lease.DEAD_AFTER - 1
        os.utime(file, (long_ago, long_ago))
        assert mine.take("cell")


def test_a_lease_that_is_only_being_written_is_held(tmp_path):
    file = tmp_path / "leases" / "cell.1.json"
    file.parent.mkdir()
    file.touch()
    assert not Leases(tmp_path).take("cell")


def test_one_process_alone_takes_a_dead_lease(tmp_path):
    file = tmp_path / "leases" / "cell.1.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"free": True}))
    code = HOLD.replace("time.sleep(600)", "time.sleep(3)")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    said = [process.communicate()[0].strip() for process in processes]
    assert sorted(said) == ["False"] * 3 + ["True"]


def test_a_process_that_lost_its_lease_ends(tmp_path):
    code = HOLD.replace(
        "leases =", "from smmd_bench.run import lease\nlease.RENEWED_EVERY = 0.1\nleases ="
    )
    with holding(tmp_path, code) as process:
        (tmp_path / "leases" / "cell.2.json").write_text("{}")
        assert process.wait(timeout=20) == -9


def test_a_lease_is_renewed(tmp_path, monkeypatch):
    monkeypatch.setattr(lease, "RENEWED_EVERY", 0.05)
    with Leases(tmp_path) as mine:
        mine.take("cell")
        file = tmp_path / "leases" / "cell.1.json"
        os.utime(file, (0, 0))
        deadline = time.monotonic() + 20
        while file.stat().st_mtime == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert file.stat().st_mtime > 0


def test_a_process_number_that_is_used_again_holds_nothing(tmp_path):
    here = dict(lease._this_process(), pid=psutil.Process().ppid(), started=1.0)
    file = tmp_path / "leases" / "cell.1.json"
    file.parent.mkdir()
    file.write_text(json.dumps(here))
    with Leases(tmp_path) as mine:
        assert mine.take("cell")


def test_a_process_that_gives_nothing_back_ends_all_the_same(tmp_path):
    code = HOLD.replace("time.sleep(600)", "")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60)
    assert done.returncode == 0
    with Leases(tmp_path) as mine:
        assert mine.take("cell")


def test_leases_in_a_storage_are_those_of_its_folder(tmp_path):
    files, run = MemoryFileSystem(), f"{tmp_path}/leased"
    far = {"node": "far", "machine": "far 1", "pid": 1, "started": 0.0}
    files.pipe_file(f"{run}/leases/cell.1.json", json.dumps({"free": True}).encode())
    files.pipe_file(f"{run}/leases/cell.2.json", json.dumps(far).encode())
    files.pipe_file(f"{run}/leases/other.3.json", json.dumps(far).encode())
    with Leases(run, files) as mine:
        assert mine.holder("cell") == "process 1 on far"
        assert mine.holder("absent") is None
        assert not mine.take("cell")
        assert mine.take("absent")
        assert files.exists(f"{run}/leases/absent.1.json")
    assert json.loads(files.cat_file(f"{run}/leases/absent.1.json")) == {"free": True}


def test_processes_of_two_containers_on_one_machine_are_of_two_machines():
    here = lease._this_process()
    assert here["machine"].startswith(f"{os.uname().nodename} ")
    assert here["machine"].endswith(str(Path("/proc/self/ns/pid").readlink()))
