"""The process in which a job runs: `python -m smmd_bench.run.worker REQUEST.json EVENTS_FD`.

REQUEST holds the stage, the run folder, the cells and the plugin files. Events go to the given
file descriptor as JSON lines. A cell that fails is recorded in its FAILED.json.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..experiment.cell import Cell
from .cell_json import cell_from_json
from .events import start
from .run_directory import record_failure


def main() -> int:
    """Run one job; status 1 if any of its cells failed."""
    request, events = start()
    cells = [
        (cell_from_json(c), Path(request["run"]) / "cells" / c["address"]) for c in request["cells"]
    ]
    planned = [content["addresses"] for content in request["cells"]]
    if request["stage"] == "train":
        from ..training.stage import train_cell as run_train

        failed = 0
        for (cell, folder), addresses in zip(cells, planned, strict=True):
            try:
                _check_planned(cell, addresses, ["train"])
                run_train(cell, folder, events.progress, request.get("track"))
            except (Exception, KeyboardInterrupt) as error:
                record_failure(folder, "train", error)
                events.send({"event": "failed", "message": str(error) or type(error).__name__})
                traceback.print_exc()
                failed = 1
        return failed
    from ..decoding.stage import decode_cells

    failures: dict[Path, Exception] = {}
    for (cell, folder), addresses in zip(cells, planned, strict=True):
        try:
            _check_planned(cell, addresses, ["train", "validate", "select", "decode"])
        except Exception as error:
            failures[folder] = error
    ready = [(cell, folder) for cell, folder in cells if folder not in failures]
    try:
        failures |= decode_cells(ready, events.progress) if ready else {}
    except Exception as error:  # the engine did not start: no cell was decoded
        traceback.print_exc()
        failures |= {folder: error for _, folder in ready}
    return events.record(failures, "decode")


def _check_planned(cell: Cell, planned: Mapping[str, str], stages: Sequence[str]) -> None:
    """Raise RuntimeError where a stage's address is not the planned one in this process: its
    results would count as those of what was planned, or be found by nobody."""
    changed = [stage for stage in stages if cell.addresses[stage] != planned[stage]]
    if changed:
        raise RuntimeError(
            f"A plugin, data or a library of {cell.label} has changed since the run was planned "
            f"(it alters the stage {changed[0]}): run the same command again."
        )


if __name__ == "__main__":
    sys.exit(main())
