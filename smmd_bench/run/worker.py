"""The process in which a job runs: `python -m smmd_bench.run.worker REQUEST.json EVENTS_FD`.

REQUEST holds the stage, the run folder, the cells and the plugin files. Events go to the given
file descriptor as JSON lines. A cell that fails is recorded in the run's failed/KEY.json.
"""

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..contracts import Progress
from ..errors import UserError
from ..experiment.cell import Cell
from ..storage.cell import StoredCell, stored_cell
from ..training.ranks import is_first, with_others
from .cell_json import cell_from_json
from .process import WorkerProcess, start
from .run_directory import record_failure


def main() -> int:
    """Run one job, of which the first process speaks; status 1 if any of its cells failed."""
    with start() as (request, events):
        if is_first():
            events.watch()
            failures = run(request, events.progress)
            return events.record(Path(request["run"]), failures, request["stage"])
        return int(bool(run(request, lambda *_: None)))


def run(request: Mapping[str, Any], progress: Progress) -> dict[str, BaseException]:
    """Do a job; the error of each cell that failed in its stage, by the key of its failure."""
    failures: dict[str, BaseException] = {}
    folder, stage, ready = Path(request["run"]), request["stage"], []
    for content in request["cells"]:
        planned = stored_cell(folder, content)
        try:
            cell = cell_from_json(content)
            _require_planned(cell, planned)
            ready.append(cell)
        except Exception as error:
            failures[planned.key] = error
    try:
        _require_gpu()
        if stage == "train":
            from ..training.stage import train_cell

            for cell in ready:
                start_rank = partial(_start_rank, request, cell, folder)
                with with_others(start_rank, partial(_fail, cell, folder)):
                    train_cell(cell, folder, progress, request.get("track"))
            return failures
        failed: dict[Cell, Exception] = {}
        if stage == "decode" and ready:
            from ..decoding.stage import decode_cells

            failed = decode_cells(ready, folder, progress)
        failures |= {cell.stored(folder).key: error for cell, error in failed.items()}
        from .comparison import measure_cells

        measured = [cell for cell in ready if cell not in failed and cell.trial is None]
        measure_cells(measured, folder, progress)
    except (Exception, KeyboardInterrupt) as error:  # a job trains one cell, or has no engine
        traceback.print_exc()
        failures |= {cell.stored(folder).key: error for cell in ready}
    return failures


def _start_rank(
    request: Mapping[str, Any], cell: Cell, run: Path, rank: int, environment: dict[str, str]
) -> Callable[[], str | None]:
    """Start another process that trains the cell; its log is beside that of the first."""
    name, module = f"train-{cell.address}-rank{rank}", "smmd_bench.run.worker"
    worker = WorkerProcess(module, request, run / "logs", name, environment=environment)
    return partial(worker.follow, lambda *_: None)


def _fail(cell: Cell, run: Path, reason: str) -> None:
    record_failure(run, cell.stored(run).key, "train", reason)
    print(reason, flush=True)
    os._exit(1)


def _require_gpu() -> None:
    """Raise UserError where this job was given a GPU that torch cannot use."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if given in ("", "-1", "NoDevFiles"):
        return
    import torch

    if not torch.cuda.is_available():
        raise UserError(
            f"This job was given the GPU {given} (CUDA_VISIBLE_DEVICES), and torch cannot use it: "
            "`smmd-bench doctor` says why. Set CUDA_VISIBLE_DEVICES= to work on the CPU."
        )


def _require_planned(cell: Cell, planned: StoredCell) -> None:
    """Raise RuntimeError where the cell is another one in this process than when it was planned:
    nobody would find its results."""
    changed = [stage for stage, part in planned.parts.items() if cell.parts.get(stage) != part]
    if changed:
        raise RuntimeError(
            f"A plugin, data or a library of {cell.label} has changed since the run was planned "
            f"(it alters the stage {changed[0]}): run the same command again."
        )


if __name__ == "__main__":
    sys.exit(main())
