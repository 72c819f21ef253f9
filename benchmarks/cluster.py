"""Twelve trainings on a Ray cluster of two nodes on this machine, one of which dies twice.

    python benchmarks/cluster.py FOLDER [--train-examples 512]

Arithmetic and Clock-Time, three losses, two seeds. The second node is killed in the middle of a
training and another one added, twice. Then the same cells are made by `local` with one thread a
job. Printed: the seconds of both, how many trainings were begun again (each after its last whole
epoch), the tables that differ (one has the time of steps), and the processes that are left.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

NODE = {"num_cpus": 1, "memory": 4 * 2**30, "object_store_memory": 2**27}
KILLS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train-examples", default="512")
    options = parser.parse_args()
    asked = [
        *("train-eval", "--task", "arithmetic,clock_time", "--losses", "ce,ntl,smmd"),
        *("--seeds", "0,1", "--epochs", "3", "--train-examples", options.train_examples),
        *("--validation-examples", "20", "--test-examples", "40", "--quiet"),
    ]
    ray, local = options.folder / "ray", options.folder / "local"
    started = time.monotonic()
    begun = on_ray(asked, ray)
    middle = time.monotonic()
    smmd_bench([*asked, "--executor", "local[threads=1]", "--out", str(local)]).wait()
    ended = time.monotonic()
    tables = sorted(p.name for p in (local / "reports" / "tables").glob("*.csv"))
    read = {
        n: [(run / "reports" / "tables" / n).read_bytes() for run in (ray, local)] for n in tables
    }
    result = {
        "seconds_ray": round(middle - started),
        "seconds_local": round(ended - middle),
        "nodes_killed": KILLS,
        "trainings": len({name for name, _ in begun}),
        "begun_again": len(begun) - len({name for name, _ in begun}),
        "tables": len(tables),
        "differ": [name for name, (mine, theirs) in read.items() if mine != theirs],
        "processes_left": len([*workers(ray)]),
    }
    print(json.dumps(result))


def smmd_bench(words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "smmd_bench.cli", *words])


def on_ray(asked: list[str], run: Path) -> set[tuple[str, float]]:
    """Run on a cluster whose second node dies; name and beginning of each training's process."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(True, head_node_args={**NODE, "include_dashboard": False})
    node = cluster.add_node(**NODE)
    cluster.wait_for_nodes()
    process = smmd_bench(
        [*asked, "--executor", f"ray[address={cluster.address}]", "--out", str(run)]
    )
    begun: set[tuple[str, float]] = set()
    killed = 0
    while process.poll() is None:
        for worker in workers(run):
            try:
                name = Path(worker.cmdline()[-2]).stem
                if name.startswith("train-"):
                    begun.add((name, worker.create_time()))
            except (psutil.Error, IndexError):
                continue
        on_node = [
            w for w in workers(run) if _is_on(w, node.all_processes["raylet"][0].process.pid)
        ]
        ripe = [w for w in on_node if "train-" in " ".join(w.cmdline()) and _age(w) > 15]
        if killed < KILLS and ripe:
            cluster.remove_node(node, allow_graceful=False)
            killed += 1
            node = cluster.add_node(**NODE)
        time.sleep(0.3)
    assert process.returncode == 0
    cluster.shutdown()
    return begun


def workers(run: Path) -> Iterator[psutil.Process]:
    """The processes of jobs of a run."""
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "smmd_bench.run.worker" in line and any(str(run.resolve()) in word for word in line):
            yield process


def _is_on(worker: psutil.Process, raylet: int) -> bool:
    try:
        return raylet in {parent.pid for parent in worker.parents()}
    except psutil.Error:
        return False


def _age(worker: psutil.Process) -> float:
    try:
        return time.time() - worker.create_time()
    except psutil.Error:
        return 0.0


if __name__ == "__main__":
    main()
