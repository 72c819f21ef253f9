"""The process in which a job runs: `python -m smmd_bench.run.worker REQUEST.json EVENTS_FD`.

REQUEST holds the stage, the run folder, the cells and the plugin files. Events go to the given
file descriptor as JSON lines. A cell that fails is recorded in its FAILED.json.
"""

import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..contracts import Progress
from ..experiment.cell import Cell
from ..training.processes import Start, is_first, with_others
from .cell_json import cell_from_json
from .engine_trials import TRY
from .process import WorkerProcess, start
from .run_directory import record_failure

_ADDRESSES = ("train", "validate", "select", "decode", "beams", "measure")


def main() -> int:
    """Run one job; status 1 if any of its cells failed. Of the processes of a training, the first
    alone says and records anything."""
    with start() as (request, events):
        if is_first():
            events.watch()
            return events.record(run(request, events.progress), request["stage"])
        return int(bool(run(request, lambda *_: None)))


def run(request: Mapping[str, Any], progress: Progress) -> dict[Path, BaseException]:
    """Do a job; the error of each cell that failed in its stage, by its folder."""
    failures: dict[Path, BaseException] = {}
    stage, ready = request["stage"], []
    for content in request["cells"]:
        folder = Path(request["run"]) / "cells" / content["address"]
        try:
            cell = cell_from_json(content)
            planned = _ADDRESSES[:1] if stage == "train" else _ADDRESSES
            _check_planned(cell, content["addresses"], planned)
            ready.append((cell, folder))
        except Exception as error:
            failures[folder] = error
    try:
        if stage == "train":
            from ..training.stage import train_cell

            for cell, folder in ready:
                with with_others(_starter(request, cell, folder), _failer(folder)):
                    train_cell(cell, folder, progress, request.get("track"))
            return failures
        if stage == TRY:
            from ..decoding.trial import try_engine

            try_engine([cell for cell, _ in ready], progress)
            return failures
        if stage == "decode" and ready:
            from ..decoding.stage import decode_cells

            failures |= decode_cells(ready, progress)
        from .comparison import measure_cells

        measure_cells([pair for pair in ready if pair[1] not in failures], progress)
    except (Exception, KeyboardInterrupt) as error:  # a job trains one cell, or has no engine
        traceback.print_exc()
        failures |= {folder: error for _, folder in ready}
    return failures


def _starter(request: Mapping[str, Any], cell: Cell, folder: Path) -> Start:
    """Starts other processes that train the cell; the logs are beside that of the first."""
    logs = folder.parent.parent / "logs"

    def start_rank(rank: int, environment: dict[str, str]) -> Callable[[], str | None]:
        name = f"train-{cell.addresses['train']}-rank{rank}"
        module = "smmd_bench.run.worker"
        worker = WorkerProcess(module, request, logs, name, environment=environment)

        def wait() -> str | None:
            while worker.hear() is not None:
                pass
            return worker.ending()

        return wait

    return start_rank


def _failer(folder: Path) -> Callable[[str], None]:
    def fail(reason: str) -> None:
        record_failure(folder, "train", reason)
        print(reason, flush=True)
        os._exit(1)

    return fail


def _check_planned(cell: Cell, planned: Mapping[str, str], stages: Sequence[str]) -> None:
    """Raise RuntimeError where a stage's address is not the planned one in this process: its
    results would count as those of what was planned, or be found by nobody."""
    changed = [s for s in stages if cell.addresses.get(s) != planned.get(s)]
    if changed:
        raise RuntimeError(
            f"A plugin, data or a library of {cell.label} has changed since the run was planned "
            f"(it alters the stage {changed[0]}): run the same command again."
        )


if __name__ == "__main__":
    sys.exit(main())
