"""Scoring completions made elsewhere: `smmd-bench score` on arithmetic, and where its time goes.

    python -m benchmarks.scoring [--completions 10000] [--repeats 3]

Two files of JSON lines are written first (not measured; the examples are in the cache by then, as
after any run on the task). Each repeat is a fresh process. Budget: 10,000 completions of one file
are read, matched, scored and written, with bootstrap intervals, in 5 s. Times are CPU seconds of
the process, except the one that says wall.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TASK = "arithmetic"
SECONDS = 5.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--completions", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(stages(options.child, options.completions)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        write_files(Path(temporary), options.completions)
        command = [sys.executable, "-m", "benchmarks.scoring"]
        command += ["--completions", str(options.completions), "--child", temporary]
        runs = [
            json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            for _ in range(options.repeats)
        ]
    middle = {name: round(statistics.median(run[name] for run in runs), 2) for name in runs[0]}
    print(json.dumps({"load": os.getloadavg()[0], "cores": os.cpu_count(), **middle}, indent=1))
    sys.exit(0 if middle["one file, wall"] <= SECONDS else 1)


def write_files(folder: Path, count: int) -> None:
    from smmd_bench.plugin_system.registry import load_task

    draw = random.Random(0)
    examples = list(load_task(TASK).examples("test", 0, count))
    for name, skill in (("ce", 0.4), ("smmd", 0.5)):
        with (folder / f"{name}.jsonl").open("w") as stream:
            for example in examples:
                right = draw.random() < skill
                text = example.target if right else str(draw.randint(-20, 20))
                stream.write(json.dumps({"uid": example.uid, "completion": text}) + "\n")


def stages(folder: Path, count: int) -> dict[str, float]:
    """CPU seconds of the whole of one file, and of its parts done one after the other."""
    times: dict[str, float] = {}

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        start = time.process_time()
        yield
        times[name] = time.process_time() - start

    with timed("imports"):
        import scipy.stats  # noqa: F401
        import statsmodels.stats.contingency_tables  # noqa: F401

        from smmd_bench.plugin_system.registry import load_task
        from smmd_bench.publishing.write_reports import write_reports
        from smmd_bench.run.predictions import score_predictions
        from smmd_bench.scoring.measure import compare
        from smmd_bench.scoring.predictions.match import match
        from smmd_bench.scoring.predictions.read import read_predictions
        from smmd_bench.scoring.score import score_frame
        from smmd_bench.scoring.statistics import metric_values

    files = [folder / "ce.jsonl", folder / "smmd.jsonl"]
    with tempfile.TemporaryDirectory() as temporary:
        outs = [Path(temporary) / "one", Path(temporary) / "two"]
        start = time.perf_counter()
        with timed("one file"):
            score_predictions(TASK, files[:1], limit=count, out=outs[0])
        times["one file, wall"] = time.perf_counter() - start
        with timed("two files and their comparison"):
            score_predictions(TASK, files, limit=count, out=outs[1])
        with timed("reports of two files"):
            write_reports(outs[1])
    task = load_task(TASK)
    with timed("part: read a file"):
        read = [read_predictions(files[0])]
    with timed("part: examples from the cache"):
        examples = list(task.examples("test", 0, count))
    with timed("part: match"):
        frame = match(read[0], task, examples, "").frame(examples, range(count))
    with timed("part: parse and score"):
        scores = score_frame(task, frame)
    with timed("part: intervals of six metrics"):
        metric_values(task, scores)
    with timed("part: comparison, where there are two files"):
        compare(task, scores, scores)
    return times


if __name__ == "__main__":
    main()
