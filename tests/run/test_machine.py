"""What of a machine a process may use: in a container, what the limits of its group leave."""

from types import SimpleNamespace

import pytest

from smmd_bench.run import machine

GIB = 2**30


@pytest.fixture
def group(tmp_path, monkeypatch):
    """The files of the control group, of a process on a machine of 8 GiB, 6 of them free."""
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    found = SimpleNamespace(total=8 * GIB, available=6 * GIB)
    monkeypatch.setattr(machine.psutil, "virtual_memory", lambda: found)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: {0, 2, 5})
    return tmp_path


@pytest.mark.parametrize(
    ("limit", "used", "free", "total"),
    [
        (None, None, 6, 8),
        ("max", 3, 6, 8),
        (8, 3, 6, 8),  # no less than there is
        (9, 8, 6, 8),
        (4, 1, 3, 4),
        (7, 0, 6, 7),  # others have the rest
        (4, 5, 0, 4),
    ],
)
def test_memory_is_that_of_the_machine_or_of_a_lower_limit(group, limit, used, free, total):
    if limit is not None:
        (group / "memory.max").write_text(f"{limit if limit == 'max' else limit * GIB}\n")
        (group / "memory.current").write_text(f"{used * GIB}\n")
    assert machine.memory() == (free * GIB, total * GIB)


@pytest.mark.parametrize(
    ("quota", "share"),
    [(None, 3), ("max 100000", 3), ("150000 100000", 1.5), ("800000 100000", 3)],
)
def test_the_share_of_cores_is_what_a_quota_of_time_gives_and_no_more_than_there_are(
    group, quota, share
):
    if quota is not None:
        (group / "cpu.max").write_text(f"{quota}\n")
    assert machine.cores() == 3
    assert machine.share_of_cores() == share


def test_where_the_system_does_not_say_a_process_may_run_on_every_core(group, monkeypatch):
    monkeypatch.delattr(machine.os, "sched_getaffinity")
    for count, cores in ((4, 4), (None, 1)):
        monkeypatch.setattr(machine.psutil, "cpu_count", lambda count=count: count)
        assert machine.cores() == cores
