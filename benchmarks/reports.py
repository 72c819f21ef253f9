"""All reports of a synthetic run of 200 cells with 10,000 completions each: time and memory.

    python -m benchmarks.reports [--cells 200] [--completions 10000] [--steps 20000] [--keep DIR]

The run is written first (minutes, not measured; intervals are in its files, as the measure stage
caches them). Then a fresh process reads it and publishes every registered report. Budget
(DESIGN.md, section 6): 20 s and 4 GiB, the page with at most 20,000 completions.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import psutil

LOSSES = (
    "ce", "gce", "ntl", "ntil", "smmd", "ntl[lambda=3]", "smmd[sigma=1]", "smmd[lambda=3]",
    "smmd[term=mmd]", "smmd[term=mmd,kernel=linear]",
)  # fmt: skip
TASKS = ("arithmetic", "gsm8k", "svamp", "clock_time", "chartqa")
SEEDS = (0, 1)
PUBLISH = """
import pathlib, sys
from smmd_bench.publishing.write_reports import write_reports
write_reports(pathlib.Path(sys.argv[1]))
"""
SECONDS, GIBIBYTES = 20, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--completions", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument(
        "--keep", type=Path, help="make the run here, or use the one that is here"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary) / "run"
        if not (folder / "complete").exists():
            make(folder, options.cells, options.completions, options.steps)
        seconds, cpu, gibibytes = published(folder)
        result = {
            "cells": len(list(folder.glob("measure/*/metrics.json"))),
            "completions_a_cell": options.completions,
            "seconds": round(seconds, 1),
            "cpu_seconds": round(cpu, 1),
            "peak_GiB": round(gibibytes, 2),
            "page_MB": round(
                (folder / "reports" / "index.html").stat().st_size / 1e6, 1
            ),
            "cores": os.cpu_count(),
        }
    print(json.dumps(result))
    within = result["seconds"] <= SECONDS and result["peak_GiB"] <= GIBIBYTES
    sys.exit(0 if within else 1)


def make(folder: Path, cells: int, completions: int, steps: int) -> None:
    from tests.runs import write_run

    of_a_model = len(LOSSES) * len(TASKS) * len(SEEDS)
    models = [f"example/model-{at}" for at in range(cells // of_a_model)]
    start = time.perf_counter()
    write_run(
        folder, models=models, tasks=TASKS, losses=LOSSES, seeds=SEEDS, n=completions, steps=steps,
        base=False, resamples=None,
    )  # fmt: skip
    (folder / "complete").touch()
    print(f"made in {time.perf_counter() - start:.0f} s", file=sys.stderr)


def published(folder: Path) -> tuple[float, float, float]:
    """Wall-clock and CPU seconds and peak GiB of a fresh process that publishes the run.

    The memory is the sum of its process and of those that it starts, seen five times a second; what
    they share counts in each.
    """
    start, peak = time.perf_counter(), 0
    process = psutil.Popen([sys.executable, "-c", PUBLISH, str(folder)])
    while process.poll() is None:
        peak = max(
            peak, sum(map(_resident, [process, *process.children(recursive=True)]))
        )
        time.sleep(0.2)
    seconds = time.perf_counter() - start
    if process.returncode:
        sys.exit(process.returncode)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, used.ru_utime + used.ru_stime, peak / 2**30


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


if __name__ == "__main__":
    main()
