"""Measure archived completions again, as this version of the software scores and compares them.

    python scripts/measure_archives.py [NAME ...]

NAME is an archive of experiments, such as `words`; default: all. Trainings, selections
and completions stay as they were made, with the versions that the manifest records: only scores,
metrics and comparisons are new. `scripts/compare_frozen.py` then says which tables differ.
"""

from __future__ import annotations

import argparse
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from compare_frozen import ARCHIVES
from pack_results import pack

from smmd_bench.plugin_system.registry import load_task
from smmd_bench.results.frames import read_run
from smmd_bench.run.comparison import measure_cell, write_comparisons
from smmd_bench.scoring.measure import measure_identity
from smmd_bench.storage.addresses import address
from smmd_bench.storage.cell import stored_cell
from smmd_bench.storage.files import read_json, write_json


def measure_run(run: Path) -> None:
    """Measure every cell of a run that has completions, under the address of today's scores."""
    manifest = read_json(run / "manifest.json")
    for stage in ("measure", "compare"):
        shutil.rmtree(run / stage, ignore_errors=True)

    for content in manifest["cells"]:
        measure_archived_cell(run, content)
    write_json(run / "manifest.json", manifest)
    write_comparisons(read_run(run))


def measure_archived_cell(run: Path, content: dict[str, Any]) -> None:
    """Measure a cell, and write the part of its address into what the manifest says of it."""
    task = load_task(content.get("task_spec", content["task"]))
    decoders = tuple(content.get("decoders") or ())
    content["parts"]["measure"] = address(measure_identity(task, decoders))

    cell = stored_cell(run, content)
    if cell.is_decoded and cell.metrics is None:
        error = measure_cell(cell, task, decoders)
        if error is not None:
            raise error


def main(names: list[str]) -> None:
    for name in names or ARCHIVES:
        with tempfile.TemporaryDirectory() as temporary:
            with tarfile.open(ARCHIVES[name]) as archive:
                archive.extractall(temporary, filter="data")
            (run,) = Path(temporary).iterdir()
            measure_run(run)
            pack(run, ARCHIVES[name])
        print(f"{ARCHIVES[name]}: {ARCHIVES[name].stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[*ARCHIVES, []], metavar="NAME")
    main(parser.parse_args().names)
