"""The process in which a job runs: `python -m smmd_bench.run.worker REQUEST.json EVENTS_FD`.

REQUEST holds the stage, the run folder, the cells and the plugin files. Events go to the given
file descriptor as JSON lines. A cell that fails is recorded in the run's failed/KEY.json.
"""

import os
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..contracts import Progress
from ..contracts.executor import shares_gpu
from ..errors import UserError, end_process
from ..experiment.cell import Cell
from ..storage.cell import StoredCell, stored_cell
from ..training.ranks import is_first, with_others
from .cell_json import cell_from_json
from .process import WorkerProcess, start
from .run_directory import record_failure


def main() -> int:
    """Run one job; status 1 if any of its cells failed. Of several processes, the first reports."""
    with start() as (request, events):
        if is_first():
            events.watch()
            failures = run(request, events.progress)
            return events.record(Path(request["run"]), failures, request["stage"])
        return int(bool(run(request, lambda *_: None)))


def run(request: Mapping[str, Any], progress: Progress) -> dict[str, BaseException]:
    """Do a job; returns the error of each cell that failed in its stage, by the key of its
    failure."""
    folder = Path(request["run"])
    failures: dict[str, BaseException] = {}
    ready: list[Cell] = []
    # A cell that cannot be made must not take the others of its job with it.
    for record in request["cells"]:
        planned = stored_cell(folder, record)
        try:
            cell = cell_from_json(record)
            _require_planned(cell, planned)
            ready.append(cell)
        except Exception as error:
            failures[planned.key] = error

    try:
        _require_gpu()
        if request["stage"] == "train":
            _train(request, ready, progress)
        else:
            failed = _finish(request, ready, progress)
            failures |= {
                cell.stored(folder).key: error for cell, error in failed.items()
            }
    except (Exception, KeyboardInterrupt) as error:
        # A job trains one cell, or has no engine: either way none of them is done.
        traceback.print_exc()
        # It ends as where main memory ends: the executor runs it again, alone.
        if shares_gpu() and "out of memory" in str(error).lower():
            os.kill(os.getpid(), signal.SIGKILL)
        failures |= {cell.stored(folder).key: error for cell in ready}

    return failures


def _train(
    request: Mapping[str, Any], cells: Sequence[Cell], progress: Progress
) -> None:
    from ..training.stage import train_cell

    folder = Path(request["run"])
    for cell in cells:
        start_rank = partial(_start_rank, request, cell, folder)
        # If another process of a training ends, the first would wait for it forever.
        with with_others(start_rank, partial(_fail, cell, folder)):
            train_cell(cell, folder, progress, request.get("track"))


def _finish(
    request: Mapping[str, Any], cells: Sequence[Cell], progress: Progress
) -> dict[Cell, Exception]:
    """Decode cells, where that is the stage, and measure them; the errors of their decoding."""
    from .comparison import measure_cells

    folder = Path(request["run"])
    failed: dict[Cell, Exception] = {}
    # An engine is started for nothing where no cell could be made.
    if request["stage"] == "decode" and cells:
        from ..decoding.stage import decode_cells

        failed = decode_cells(cells, folder, progress)

    # A trial has no test. `measure_cells` records the cells that it cannot measure.
    decoded = [cell for cell in cells if cell not in failed and cell.trial is None]
    measure_cells(decoded, folder, progress)
    return failed


def _start_rank(
    request: Mapping[str, Any],
    cell: Cell,
    run: Path,
    rank: int,
    environment: dict[str, str],
) -> Callable[[], str | None]:
    """Start another process that trains the cell; its log is beside that of the first."""
    name, module = f"train-{cell.address}-rank{rank}", "smmd_bench.run.worker"
    worker = WorkerProcess(module, request, run / "logs", name, environment=environment)
    return partial(worker.follow, lambda *_: None)


def _fail(cell: Cell, run: Path, reason: str) -> None:
    record_failure(run, cell.stored(run).key, "train", reason)
    print(reason, flush=True)
    # This is a thread, and the training may hang in a collective: nothing else ends it.
    os._exit(1)


def _require_gpu() -> None:
    """Raise UserError where this job was given a GPU that torch cannot use."""
    devices = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    # Slurm writes the last one where a job has no GPU.
    if devices in ("", "-1", "NoDevFiles"):
        return
    import torch

    if not torch.cuda.is_available():
        raise UserError(
            f"This job was given the GPU {devices} (CUDA_VISIBLE_DEVICES), and torch cannot use "
            "it: `smmd-bench doctor` says why. Set CUDA_VISIBLE_DEVICES= to work on the CPU."
        )


def _require_planned(cell: Cell, planned: StoredCell) -> None:
    """Raise RuntimeError where the cell is another one in this process than when it was planned:
    nobody would find its results."""
    changed = [
        stage for stage, part in planned.parts.items() if cell.parts.get(stage) != part
    ]
    if changed:
        raise RuntimeError(
            f"A plugin, data or a library of {cell.label} has changed since the run was planned "
            f"(it alters the stage {changed[0]}): run the same command again."
        )


if __name__ == "__main__":
    end_process(main)
