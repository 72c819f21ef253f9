"""Drawing the synthetic pictures: all 14,400 clocks, and some charts.

    python -m benchmarks.pictures

They are drawn into an empty cache folder, in a process for every core, as a run would draw them.
Budget: all clocks in 60 s.
"""

from __future__ import annotations

import os
import tempfile
import time

from smmd_bench.plugin_system.registry import load_task

SPLITS = ("train", "validation", "test")
CHARTS = 1_000


def seconds(spec: str, split: str, count: int | None) -> tuple[int, float, float]:
    """(pictures, wall seconds, CPU seconds with those of child processes)."""
    wall, before = time.perf_counter(), os.times()
    examples = load_task(spec).examples(split, 0, count)  # type: ignore[arg-type]
    after = os.times()
    pictures = len({path for example in examples for path in example.images})
    return pictures, time.perf_counter() - wall, sum(after[:4]) - sum(before[:4])


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        os.environ["SMMD_BENCH_CACHE"] = cache
        clocks = [seconds("clock_time[source=synthetic]", split, None) for split in SPLITS]
        charts = [seconds("chartqa[source=synthetic]", "train", CHARTS)]
        again = [seconds("clock_time[source=synthetic]", split, None) for split in SPLITS]
    for what, rows in (("clocks", clocks), ("charts", charts), ("clocks, again", again)):
        count, wall, cpu = (sum(column) for column in zip(*rows, strict=True))
        print(f"{what}: {count:,} in {wall:.1f} s ({cpu:.1f} s of CPU)")


if __name__ == "__main__":
    main()
