"""Twelve cells made by many processes, some of which are killed, and by one.

    python -m benchmarks.cluster FOLDER [--train-examples 512] [--test-examples 40]

Arithmetic and Clock-Time, three losses, two seeds, with their untuned models, made three times:
by `run` in one process, one thread a job; on a Ray cluster of two nodes on this machine, one of
which is killed in the middle of a training, and another one added, twice; and by four processes of
`work --cell`, one of which is killed in the middle of a training and started again.

Printed for each: seconds, training jobs (one for each cell and each untuned model), how many were
begun again, epochs that were trained twice to their end, files of the reports, those and the cells'
weights that differ from the ones of one process (the time of steps is left out), and processes that
are left. The exit status is 1 where something differs or a process is left.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import yaml

from smmd_bench.storage.files import read_json

COMMAND = str(Path(sys.executable).parent / "smmd-bench")
EPOCHS = 3
EXPERIMENT = {
    "name": "cluster",
    "models": ["builtin/tiny-vl"],
    "tasks": ["arithmetic[level=easy,operations=1..2]", "clock_time"],
    "losses": ["ce", "ntl", "smmd"],
    "seeds": [0, 1],
}
NODE = {"num_cpus": 1, "memory": 4 * 2**30, "object_store_memory": 2**27}
NODES_KILLED, PROCESSES = 2, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train-examples", type=int, default=512)
    parser.add_argument("--test-examples", type=int, default=40)
    options = parser.parse_args()
    result = measure(options.folder, options.train_examples, options.test_examples)
    print(json.dumps(result, indent=1))
    bad = [way for way, said in result.items() if said["differ"] or said["processes_left"]]
    sys.exit(1 if bad else 0)


def measure(
    folder: Path, train_examples: int, test_examples: int, engine: str = "vllm"
) -> dict[str, dict[str, Any]]:
    """What was seen of each way, by its name."""
    folder.mkdir(parents=True, exist_ok=True)
    recipe = {"train_examples": train_examples, "test_examples": test_examples}
    recipe |= {"epochs": EPOCHS, "validation_examples": test_examples // 2}
    file = folder / "experiment.yaml"
    file.write_text(
        yaml.safe_dump({**EXPERIMENT, "engine": engine, "recipe": recipe}), encoding="utf-8"
    )
    ways = {"local": by_one_process, "ray": on_ray, "work": by_several_processes}
    return {way: _seen(make, folder / way, file, folder / "local") for way, make in ways.items()}


class Trainings:
    """What is seen of the trainings of a run while it is made."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.begun: set[tuple[str, float]] = set()  # address, and when the process began
        self.epochs: set[tuple[str, str, int]] = set()  # address, epoch, and its folder's number

    def look(self) -> dict[str, psutil.Process]:
        """The processes that train now, by the address of their cell."""
        for epoch in self.run.glob("cells/*/epochs/[0-9]*"):
            try:
                self.epochs.add((epoch.parts[-3], epoch.name, epoch.stat().st_ino))
            except OSError:
                continue
        training = {
            Path(request).stem.removeprefix("train-"): process
            for process, request in jobs_of(self.run)
            if Path(request).stem.startswith("train-")
        }
        for address, process in training.items():
            self.begun.add((address, process.create_time()))
        return training

    def in_the_middle(self) -> list[psutil.Process]:
        """Those with an epoch behind them and more than one to come."""
        training = self.look()
        behind = {a: len([*self.run.glob(f"cells/{a}/epochs/[0-9]*")]) for a in training}
        return [process for a, process in training.items() if 0 < behind[a] < EPOCHS - 1]


def by_one_process(run: Path, file: Path, trainings: Trainings) -> None:
    process = start("run", str(file), "--out", str(run), "--executor", "local[threads=1]")
    _wait(process, trainings.look)


def on_ray(run: Path, file: Path, trainings: Trainings) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(True, head_node_args={**NODE, "include_dashboard": False})
    nodes = [cluster.add_node(**NODE)]
    cluster.wait_for_nodes()

    def look() -> None:
        raylet = nodes[-1].all_processes["raylet"][0].process.pid
        here = [p for p in trainings.in_the_middle() if raylet in _ancestors(p)]
        if here and len(nodes) <= NODES_KILLED:
            cluster.remove_node(nodes[-1], allow_graceful=False)
            nodes.append(cluster.add_node(**NODE))

    ray = f"ray[address={cluster.address}]"
    _wait(start("run", str(file), "--out", str(run), "--executor", ray), look)
    assert len(nodes) == NODES_KILLED + 1, "the trainings were too short to kill a node in one"
    cluster.shutdown()


def by_several_processes(run: Path, file: Path, trainings: Trainings) -> None:
    planned = start("plan", str(file), "--out", str(run), "--json").communicate()[0]
    addresses = [cell["address"] for cell in json.loads(planned)["cells"]]

    def share(number: int) -> subprocess.Popen[str]:
        cells = [f"--cell={address}" for address in addresses[number::PROCESSES]]
        alone = ("--executor", "local[workers=1,threads=1]")
        return start("work", "--run", str(run), *cells, *alone)

    processes = [share(number) for number in range(PROCESSES)]
    killed: list[int] = []

    def look() -> None:
        middle = trainings.in_the_middle()
        for number, process in enumerate(processes):
            if not killed and any(process.pid in _ancestors(training) for training in middle):
                process.kill()
                process.communicate()
                killed.append(number)
                processes[number] = share(number)

    while any(process.poll() is None for process in processes):
        look()
        time.sleep(0.1)
    assert killed, "the trainings were too short to kill a process in one"
    for process in [*processes, start("run", str(file), "--out", str(run))]:
        _wait(process, lambda: None)


def start(*words: str) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([COMMAND, *words], text=True, **pipes)


def jobs_of(run: Path) -> Iterator[tuple[psutil.Process, str]]:
    """The processes of jobs of a run, each with the file that asks for it."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        asked = [word for word in words if word.startswith(f"{run.resolve()}/")]
        if "smmd_bench.run.worker" in words and asked:
            yield process, asked[0]


def _seen(
    make: Callable[[Path, Path, Trainings], None], run: Path, file: Path, reference: Path
) -> dict[str, Any]:
    trainings, began = Trainings(run), time.monotonic()
    make(run, file, trainings)
    seconds = round(time.monotonic() - began)
    cells = {address for address, _ in trainings.begun}
    epochs = {(address, epoch) for address, epoch, _ in trainings.epochs}
    one, other = ({**_reports(folder), **_weights(folder)} for folder in (reference, run))
    return {
        "seconds": seconds,
        "trainings": len(cells),
        "begun_again": len(trainings.begun) - len(cells),
        "epochs_trained_twice": len(trainings.epochs) - len(epochs),
        "reports": len(_reports(run)),
        "differ": sorted(n for n in {*one, *other} if one.get(n) != other.get(n)),
        "processes_left": len([*jobs_of(run)]),
    }


def _reports(run: Path) -> dict[str, bytes]:
    files = run.glob("reports/*/*.*")
    return {path.name: path.read_bytes() for path in files}


def _weights(run: Path) -> dict[str, list[str]]:
    """The digests of each cell's weights after each epoch, by the name of its folder."""
    receipts = {path.parent.name: read_json(path) for path in run.glob("cells/*/train.json")}
    return {cell: [e["weights"] for e in said["epochs"]] for cell, said in receipts.items() if said}


def _wait(process: subprocess.Popen[str], look: Callable[[], object]) -> None:
    while process.poll() is None:
        look()
        time.sleep(0.1)
    said, complaint = process.communicate()
    assert process.returncode == 0, said + complaint


def _ancestors(process: psutil.Process) -> set[int]:
    try:
        return {parent.pid for parent in process.parents()}
    except psutil.Error:
        return set()


if __name__ == "__main__":
    main()
