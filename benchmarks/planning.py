"""Planning a finished matrix of 1,000 cells: the cells' addresses, and what is missing of each.

    python benchmarks/planning.py [--cells 1000] [--repeats 3]

The run's folder is written first (not measured): what `RunDirectory.missing` reads of a finished
cell, with a row of content. Budget (DESIGN.md, section 6): 2 s beyond the imports.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from smmd_bench.experiment.cell import Cell
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.files import write_json, write_parquet

SECONDS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        run = RunDirectory(Path(temporary))
        for cell in matrix(options.cells).cells:  # also imports the plugins
            finish(run, cell)
        times = [planned(run, options.cells) for _ in range(options.repeats)]
    addresses, missing = (statistics.median(column) for column in zip(*times, strict=True))
    result = {
        "cells": options.cells,
        "seconds_addresses": round(addresses, 2),
        "seconds_missing": round(missing, 2),
        "seconds": round(addresses + missing, 2),
        "cores": os.cpu_count(),
    }
    print(json.dumps(result))
    sys.exit(0 if result["seconds"] <= SECONDS else 1)


def matrix(cells: int) -> Experiment:
    """Ten losses, and as many seeds as it takes."""
    losses = ("ce", *(f"ntl[lambda={k}]" for k in range(1, 5)))
    losses += tuple(f"smmd[sigma={k},lambda=5]" for k in range(1, 6))
    return Experiment(("arithmetic",), losses, seeds=tuple(range(cells // 10)), base=False)


def finish(run: RunDirectory, cell: Cell) -> None:
    """What a finished cell leaves, as far as planning reads it."""
    folder = run.cell_folder(cell)
    epochs = [{"epoch": epoch, "weights": f"weights {epoch}"} for epoch in (1, 2)]
    write_json(folder / "train.json", {"address": cell.addresses["train"], "epochs": epochs})
    stamp = run.current(cell).selection_stamp
    write_json(folder / "selection.json", {"address": stamp, "best_epoch": 2})
    write_json(folder / "checkpoint" / "canary.json", epochs[-1])
    now = run.current(cell)
    frame = pd.DataFrame({"uid": ["0"], "completion": ["1"]})
    for name in ("completions", "probes"):
        write_parquet(folder / f"{name}.parquet", frame, now.decode_stamp or "")
    write_parquet(folder / "scores.parquet", frame, now.measure_stamp or "")
    write_json(folder / "metrics.json", {"address": now.measure_stamp})


def planned(run: RunDirectory, count: int) -> tuple[float, float]:
    """Seconds for the addresses of a fresh matrix, and then for what is missing of it."""
    start = time.perf_counter()
    cells = matrix(count).cells
    for cell in cells:
        _ = cell.addresses
    middle = time.perf_counter()
    missing = [run.missing(cell) for cell in cells]
    end = time.perf_counter()
    assert len(cells) == count
    assert not any(missing)
    return middle - start, end - middle


if __name__ == "__main__":
    main()
