"""How long one waits for small things: `smmd-bench --help`, `ls`, an answer to a mistake, one table
of a finished run, the same command again on 1,000 finished cells.

    python -m benchmarks.command_line [--repeats 5]

Each is a process of its own, on the results of experiments/replication/lora.tar.xz, or on cells of
four examples each. CPU seconds, medians; all of them contain the start of an empty Python process.
Then the same as ratios to --help of this run, which a busy machine changes less. Status 1 where one
is above its budget.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from filelock import FileLock

from smmd_bench.run.run_directory import RunDirectory
from tests.run.finished_cells import PLAIN, claim, finish

ARCHIVE = Path(__file__).parent.parent / "experiments" / "replication" / "lora.tar.xz"
COMMAND = str(Path(sys.executable).parent / "smmd-bench")
JOB = "train-eval --task arithmetic --losses ce,smmd"
SMALL: dict[str, tuple[str, float]] = {
    "--help": ("--help", 0.3),
    "ls": ("ls", 0.5),
    "mistyped task": ("train-eval --task arithmatic --losses ce", 0.5),
    "mistyped loss": (f"{JOB},smd", 0.5),
    "mistyped model": (f"{JOB} --model builtin/tinny", 0.5),
    "absent model": (f"{JOB} --model ./nowhere", 0.5),
    "mistyped report": ("report RUN --only tabel2", 0.5),
    "absent run": ("report no-such-run", 0.5),
    "refused lock": (f"{JOB} --out RUN", 0.7),
    "one table": ("report RUN --only scale_errors", 1.5),
    "show": ("show RUN", 1),
    "compare": ("compare RUN RUN", 2),
}
"""What is run, and its budget in seconds."""
LOSSES, SEEDS = "ce,gce,ntl,ntil,smmd", range(200)
AGAIN = f"train-eval --task arithmetic --losses {LOSSES} --seeds {','.join(map(str, SEEDS))}"
AGAIN += " --set epochs=2 --validation-examples 4 --test-examples 4 --out"
NOTHING_TO_DO = 2
"""The budget of 1,000 finished cells, in seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats

    def median(words: Iterable[str]) -> float:
        return round(statistics.median(seconds([*words]) for _ in range(repeats)), 3)

    def again(folder: Path) -> float:
        words = [COMMAND, *AGAIN.split(), str(folder)]
        seconds(words)  # compares the cells, and makes the reports
        return median(words)

    result = {"python": median([sys.executable, "-c", "pass"])}
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(place, filter="data")
        (run,) = Path(place).iterdir()
        with FileLock(run / ".lock"):
            for name, (line, _) in SMALL.items():
                words = (str(run) if word == "RUN" else word for word in line.split())
                result[name] = median([COMMAND, *words])
        result["nothing to do"] = again(finished_cells(Path(place) / "thousand"))
    ratios = {
        f"{name} : --help": round(result[name] / result["--help"], 1) for name in result
    }
    machine = {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    print(json.dumps({**result, **ratios, **machine}, indent=1))
    budgets = {name: most for name, (_, most) in SMALL.items()} | {
        "nothing to do": NOTHING_TO_DO
    }
    sys.exit(any(result[name] > most for name, most in budgets.items()))


def finished_cells(folder: Path) -> Path:
    """The folder of `AGAIN` with every cell finished."""
    run, experiment = (
        RunDirectory(folder),
        replace(PLAIN, losses=LOSSES.split(","), seeds=[*SEEDS]),
    )
    claim(run, experiment)
    for cell in experiment.cells:
        finish(run, cell)
    return folder


def seconds(words: list[str]) -> float:
    """The CPU time of a command, which may end with the status of a mistake."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode not in (0, 2):
        raise RuntimeError(
            f"{words} ended with {done.returncode}: {done.stderr[-500:]}"
        )
    return spent


if __name__ == "__main__":
    main()
