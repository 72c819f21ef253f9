"""How long one waits for the plan of 10,000 cells, and for 1,000 finished cells with nothing to do.

    python benchmarks/planning.py [--planned 10000] [--finished 1000] [--repeats 3]

Both are commands as they are typed, each a process of its own. The finished run is not measured:
a cell is trained and scored on eight examples, and every other cell gets its files, stamped as its
own; a first `run` then compares the cells and makes the report. Budgets: 10 s and 5 s, and of these
2 s for the cells' addresses and what is missing of each (DESIGN.md, section 6).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow.parquet as pq

from smmd_bench.experiment.cell import Cell
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.current import training_stamp
from smmd_bench.storage.files import read_json, write_json, write_parquet

COMMAND = str(Path(sys.executable).parent / "smmd-bench")
BUDGETS = {"seconds_plan": 10, "seconds_nothing_to_do": 5, "seconds_planned": 2}
RECIPE = {"train_examples": 16, "validation_examples": 4, "test_examples": 8, "epochs": 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planned", type=int, default=10_000)
    parser.add_argument("--finished", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        plan = [yaml_of(place / "plan.yaml", options.planned), "--out", str(place / "plan")]
        result = {
            "cells_planned": options.planned,
            "seconds_plan": median(
                lambda: command("plan", *plan),
                options.repeats,
                before=lambda: shutil.rmtree(place / "plan", ignore_errors=True),
            ),
        }
        file, run = yaml_of(place / "run.yaml", options.finished), RunDirectory(place / "run")
        made = matrix(options.finished)
        finish(run, made)
        again = ["run", file, "--out", str(run.path), "--quiet"]
        command(*again)
        assert "Nothing to do" in command(*again[:-1])
        result |= {
            "cells_finished": options.finished,
            "seconds_nothing_to_do": median(lambda: command(*again), options.repeats),
            "seconds_planned": in_new_process(look, run, options.finished),
            "cores": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1),
        }
    print(json.dumps(result))
    sys.exit(0 if all(result[name] <= most for name, most in BUDGETS.items()) else 1)


def matrix(cells: int) -> Experiment:
    """Ten losses, and as many seeds as it takes."""
    losses = ("ce", *(f"ntl[lambda={k}]" for k in range(1, 5)))
    losses += tuple(f"smmd[sigma={k},lambda=5]" for k in range(1, 6))
    seeds = tuple(range(cells // len(losses)))
    return Experiment(
        ("arithmetic",), losses, seeds=seeds, base=False, recipe=RECIPE, engine="transformers"
    )


def yaml_of(path: Path, cells: int) -> str:
    path.write_text(matrix(cells).to_yaml(), encoding="utf-8")
    return str(path)


def finish(run: RunDirectory, experiment: Experiment) -> None:
    """Give every cell what the first has when it is trained and scored."""
    first, *others = experiment.cells
    command(
        "train-eval", "--task", first.task, "--losses", first.loss, "--no-base", "--engine",
        first.engine, "--out", str(run.path), "--quiet",
        *(f"--set={name}={value}" for name, value in RECIPE.items()),
    )  # fmt: skip
    with run.locked():
        run.claim([experiment])
    for cell in others:
        copy(run, first, cell)
    assert not any(map(run.missing, experiment.cells))


def copy(run: RunDirectory, done: Cell, cell: Cell) -> None:
    """Stamp the files of a finished cell as another's; the weights are links to its own."""
    source, folder = run.cell_folder(done), run.cell_folder(cell)
    shutil.copytree(source / "checkpoint", folder / "checkpoint", copy_function=os.link)

    def stamped(name: str, stamp: str | None) -> None:
        if name.endswith(".json"):
            write_json(folder / name, {**(read_json(source / name) or {}), "address": stamp})
        else:
            frame = pq.read_table(source / f"{name}.parquet").to_pandas()
            write_parquet(folder / f"{name}.parquet", frame, stamp or "")

    stamped("train.json", cell.addresses["train"])
    now = run.current(cell)
    stamped("train_log", training_stamp(cell.addresses["train"], now.weights))
    stamped("validation", now.validation_stamp)
    stamped("selection.json", now.selection_stamp)
    now = run.current(cell)
    for name in ("completions", "probes", "decode.json"):
        stamped(name, now.decode_stamp)
    for name in ("scores", "metrics.json"):
        stamped(name, now.measure_stamp)


def look(run: RunDirectory, cells: int) -> float:
    """Seconds for the addresses of a matrix, and what is missing of it, without the imports."""
    run.missing(matrix(10).cells[0])
    began = time.monotonic()
    assert not any(map(run.missing, matrix(cells).cells))
    return round(time.monotonic() - began, 2)


def in_new_process(work: Callable[..., float], *arguments: object) -> float:
    """What a function returns in a process that remembers no file."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def command(*words: str) -> str:
    done = subprocess.run([COMMAND, *words], check=True, capture_output=True, text=True)
    return done.stdout


def median(
    work: Callable[[], object], repeats: int, before: Callable[[], object] = lambda: None
) -> float:
    times = []
    for _ in range(repeats):
        before()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return round(statistics.median(times), 2)


if __name__ == "__main__":
    main()
