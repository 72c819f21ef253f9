"""Make the tables of finished runs again and compare them with the frozen ones.

    python scripts/compare_frozen.py [NAME ...] [--write]

NAME is an archive of experiments, such as `words`, or `demo`, the run of `make demo`
(minutes); default: the archives. Frozen are the tables in CSV under tests/data/frozen/NAME. A table
that no report makes any more is named and is no difference. Status 1 where a table differs.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FROZEN = ROOT / "tests" / "data" / "frozen"
ARCHIVES = {
    file.name.removesuffix(".tar.xz"): file
    for file in sorted((ROOT / "experiments").glob("*/*.tar.xz"))
}
DEMO = ("train-eval", "--task", "arithmetic", "--losses", "ce,ntl,smmd", "--out")
LARGEST = 100_000
"""Bytes of a table that is frozen."""


def main(names: list[str], *, write: bool) -> int:
    different = 0
    for name in names or ARCHIVES:
        with tempfile.TemporaryDirectory() as temporary:
            made = make_tables(name, Path(temporary))
            if write:
                freeze(FROZEN / name, made)
            different += compare(name, made)
    return min(different, 1)


def make_tables(name: str, folder: Path) -> dict[str, str]:
    """The text of each table, by file name."""
    command = Path(sys.executable).with_name("smmd-bench")
    if name == "demo":
        run = folder / "demo"
        subprocess.run(
            [command, *DEMO, run, "--quiet"], check=True, stdout=subprocess.DEVNULL
        )
    else:
        with tarfile.open(ARCHIVES[name]) as archive:
            archive.extractall(folder, filter="data")
        (run,) = folder.iterdir()
    words = [command, "report", run, "--format", "csv", "--quiet"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    files = (run / "reports" / "tables").glob("*.csv")
    return {file.name: file.read_text(encoding="utf-8") for file in files}


def freeze(folder: Path, made: dict[str, str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file, text in made.items():
        if len(text) <= LARGEST:
            (folder / file).write_text(text, encoding="utf-8")


def compare(name: str, made: dict[str, str]) -> int:
    """How many tables differ; says which."""
    different, frozen = 0, sorted((FROZEN / name).glob("*.csv"))
    for file in frozen:
        if file.name not in made:
            print(f"{name}: no report makes {file.name} any more")
        elif file.read_text(encoding="utf-8") != made[file.name]:
            different += 1
            print(f"{name}: {file.name} differs")
    print(f"{name}: {len(frozen)} tables, {different} differ")
    return different


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", choices=[*ARCHIVES, "demo", []], metavar="NAME"
    )
    parser.add_argument("--write", action="store_true", help="freeze what is made now")
    arguments = parser.parse_args()
    sys.exit(main(arguments.names, write=arguments.write))
