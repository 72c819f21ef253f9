"""How long one waits for small things: `smmd-bench --help`, `ls`, an answer to a mistake, one table
of a finished run.

    python benchmarks/command_line.py [--repeats 5]

Each is a process of its own, on the results of experiments/replication/lora.tar.xz. Wall seconds,
medians; all of them contain the start of an empty Python process. Then the same as ratios to --help
of this run, which a busy machine changes less. Status 1 where one is above its budget.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from filelock import FileLock

ARCHIVE = Path(__file__).parent.parent / "experiments" / "replication" / "lora.tar.xz"
COMMAND = str(Path(sys.executable).parent / "smmd-bench")
JOB = "train-eval --task arithmetic --losses ce,smmd"
SMALL: dict[str, tuple[str, float]] = {
    "--help": ("--help", 0.3),
    "ls": ("ls", 0.5),
    "mistyped task": ("train-eval --task arithmatic --losses ce", 0.5),
    "mistyped loss": (f"{JOB},smd", 0.5),
    "mistyped engine": (f"{JOB} --engine vlm", 0.5),
    "mistyped parameter": (f"{JOB}[sgma=2]", 0.5),
    "mistyped model": (f"{JOB} --model builtin/tinny", 0.5),
    "mistyped loss of overhead": ("overhead --losses ntll", 0.5),
    "mistyped report": ("report RUN --only tabel2", 0.5),
    "mistyped loss of export": ("export RUN --loss smd --out exported", 0.5),
    "mistyped suite": ("regress RUN --suite mmluu", 1),
    "absent run": ("report no-such-run", 0.5),
    "refused lock": (f"{JOB} --out RUN", 1),
    "one table": ("report RUN --only scale_errors", 2),
    "compare": ("compare RUN RUN", 2),
}
"""What is run, and its budget in seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats

    def median(words: Iterable[str]) -> float:
        return round(statistics.median(seconds([*words]) for _ in range(repeats)), 3)

    result = {"python": median([sys.executable, "-c", "pass"])}
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(place, filter="data")
        (run,) = Path(place).iterdir()
        with FileLock(run / ".lock"):
            for name, (line, _) in SMALL.items():
                words = (str(run) if word == "RUN" else word for word in line.split())
                result[name] = median([COMMAND, *words])
    ratios = {f"{name} : --help": round(result[name] / result["--help"], 1) for name in SMALL}
    machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    print(json.dumps({**result, **ratios, **machine}, indent=1))
    sys.exit(any(result[name] > most for name, (_, most) in SMALL.items()))


def seconds(words: list[str]) -> float:
    """The wall time of a command, which may end with the status of a mistake."""
    start = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True)
    spent = time.perf_counter() - start
    if done.returncode not in (0, 2):
        raise RuntimeError(f"{words} ended with {done.returncode}: {done.stderr[-500:]}")
    return spent


if __name__ == "__main__":
    main()
