"""How long one waits for `smmd-bench --help`, `ls` and a completion.

    python benchmarks/command_line.py [--repeats 5]

Each is a process of its own, with a cache folder of its own; the first `ls` imports every plugin
and keeps what it found, the others read that. Budgets: 0.3 s for --help (DESIGN.md, section 6), 1 s
for `ls`, 0.5 s for a completion; of the first `ls` there is none. Wall seconds, medians; beside
them an empty Python process, which they all contain.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = str(Path(sys.executable).parent / "smmd-bench")
COMPLETION = {
    "_SMMD_BENCH_COMPLETE": "bash_complete",
    "COMP_WORDS": "smmd-bench train-eval --losses ce,",
    "COMP_CWORD": "3",
}
BUDGETS = {"--help": 0.3, "ls": 1.0, "ls -v": 1.0, "ls --json": 1.0, "completion": 0.5}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "SMMD_BENCH_CACHE": cache}

        def median(words: list[str], count: int = repeats, **variables: str) -> float:
            times = [seconds(words, {**environment, **variables}) for _ in range(count)]
            return round(statistics.median(times), 3)

        result = {
            "python": median([sys.executable, "-c", "pass"]),
            "--help": median([COMMAND, "--help"]),
            "first ls": median([COMMAND, "ls"], 1),
            "ls": median([COMMAND, "ls"]),
            "ls -v": median([COMMAND, "ls", "-v"]),
            "ls --json": median([COMMAND, "ls", "--json"]),
            "completion": median([COMMAND], **COMPLETION),
        }
    print(json.dumps({**result, "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}))
    sys.exit(0 if all(result[name] <= most for name, most in BUDGETS.items()) else 1)


def seconds(words: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(words, env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
