"""How long one waits for `smmd-bench --help`, `ls` and a completion.

    python benchmarks/command_line.py [--repeats 5]

Each is a process of its own. Budgets: 0.3 s for --help (DESIGN.md, section 6), 0.5 s for `ls` and
for a completion. `ls -v` and `ls --json` import every plugin, and torch with them: they have no
budget. Wall seconds, medians; all of them contain the start of an empty Python process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

COMMAND = str(Path(sys.executable).parent / "smmd-bench")
COMPLETION = {
    "_SMMD_BENCH_COMPLETE": "bash_complete",
    "COMP_WORDS": "smmd-bench train-eval --losses ce,",
    "COMP_CWORD": "3",
}
BUDGETS = {"--help": 0.3, "ls": 0.5, "completion": 0.5}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats

    def median(words: list[str], count: int = repeats, **variables: str) -> float:
        times = [seconds(words, {**os.environ, **variables}) for _ in range(count)]
        return round(statistics.median(times), 3)

    result = {
        "python": median([sys.executable, "-c", "pass"]),
        "--help": median([COMMAND, "--help"]),
        "ls": median([COMMAND, "ls"]),
        "ls -v": median([COMMAND, "ls", "-v"], 1),
        "ls --json": median([COMMAND, "ls", "--json"], 1),
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
