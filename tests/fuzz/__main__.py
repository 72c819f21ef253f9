"""Search for inputs that a target does not survive, guided by coverage (atheris, libFuzzer).

    python -m tests.fuzz TARGET ... --seconds 600 [--found FOLDER]

Each target has a process of its own, starts from `corpus/TARGET`, and keeps what adds coverage in
FOLDER/TARGET. An input that fails is made smaller and written to `corpus/TARGET` as failed-DIGEST.
The processor time of each target is printed. `--keep 30` then copies the inputs that add lines of
the product to the corpus, the smallest first. The exit status is 1 where anything failed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
from pathlib import Path

from .corpus import files_of, keep_best
from .targets import TARGETS

OFFLINE = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="+", choices=sorted(TARGETS), metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=600, help="of each target")
    parser.add_argument("--found", type=Path, default=Path("runs/fuzz"))
    parser.add_argument("--keep", type=int, default=0, help="inputs to copy to the corpus")
    asked = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        sys.exit(
            "The search needs atheris, which is not installed: install it with pip install "
            "atheris, or run the tests of tests/fuzz, which need hypothesis alone."
        )
    failed = 0
    for name in asked.targets:
        before, start = len(files_of(name, "failed-*")), _seconds()
        status = _search(name, asked.found / name, asked.seconds)
        new = len(files_of(name, "failed-*")) - before
        print(f"{name}: {_seconds() - start:.0f} CPU seconds, {new} new failures, exit {status}")
        failed += bool(new or status)
        if asked.keep:
            keep_best(name, asked.found / name, asked.keep)
    sys.exit(1 if failed else 0)


def _search(name: str, found: Path, seconds: int) -> int:
    found.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.guided", name, str(found), str(seconds)]
    return subprocess.run(command, env={**os.environ, **OFFLINE}).returncode


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
