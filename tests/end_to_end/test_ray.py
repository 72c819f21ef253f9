"""A run on Ray gives the tables that `local` gives, also where tasks are killed."""

import threading
import time

import psutil
import pytest

pytest.importorskip("ray")
pytestmark = [pytest.mark.engine, pytest.mark.slow]
ASKED = (
    "train-eval --task arithmetic --losses ce,smmd --train-examples 512 --epochs 3 "
    "--validation-examples 20 --test-examples 40 --engine transformers"
)


def kill_two_tasks(process, killed):
    """Kill two tasks of Ray, each in the middle of a training."""
    while process.poll() is None and len(killed) < 2:
        for task in psutil.Process(process.pid).children(recursive=True):
            try:
                training = any(
                    "/train-" in " ".join(c.cmdline()) for c in task.children()
                )
                if (
                    task.name().startswith("ray::")
                    and training
                    and task.pid not in killed
                ):
                    time.sleep(8)
                    task.kill()
                    killed.append(task.pid)
                    break
            except psutil.Error:
                continue
        time.sleep(0.2)


def test_ray_gives_what_local_gives_though_tasks_are_killed(
    smmd_bench, finish, tmp_path
):
    local, ray, killed = tmp_path / "local", tmp_path / "ray", []
    finish(f"{ASKED} --executor local[threads=1] --out", local)
    process = smmd_bench.start(f"{ASKED} --executor ray[retries=3] --out", ray)
    killer = threading.Thread(target=kill_two_tasks, args=(process, killed))
    killer.start()
    output, _ = process.communicate(timeout=800)
    killer.join()
    assert process.returncode == 0, output
    assert len(killed) == 2

    tables = sorted(path.name for path in (local / "reports/tables").glob("*.csv"))
    assert "arithmetic_table.csv" in tables

    for name in tables:
        by_ray, by_local = (
            (run / "reports/tables" / name).read_text() for run in (ray, local)
        )
        assert by_ray == by_local, name
    lines = [
        " ".join(p.info["cmdline"] or ()) for p in psutil.process_iter(["cmdline"])
    ]
    assert not [line for line in lines if str(ray) in line]
    assert not [*ray.rglob("*.part")]
