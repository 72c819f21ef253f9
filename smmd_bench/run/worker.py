"""The process in which a job runs: `python -m smmd_bench.run.worker REQUEST.json EVENTS_FD`.

REQUEST holds the stage, the run folder, the cells and the plugin files. Events go to the given
file descriptor as JSON lines. A cell that fails is recorded in its FAILED.json.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from ..experiment.experiment import Cell
from ..plugin_system.registry import load_plugin_file
from ..storage.files import read_json
from .run_directory import cell_from_json, record_failure

_SECONDS = 0.2
_PR_SET_PDEATHSIG = 1


class Events:
    """Writes events; if nobody reads any more, the process ends."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.last: dict[str, float] = {}

    def progress(self, what: str, done: int, total: int) -> None:
        """At most five events a second for each `what`, and always the last."""
        now = time.monotonic()
        if done < total and now - self.last.get(what, 0.0) < _SECONDS:
            return
        self.last[what] = now
        self.send({"event": "progress", "what": what, "done": done, "total": total})

    def send(self, event: dict[str, object]) -> None:
        """One JSON line."""
        try:
            print(json.dumps(event), file=self.stream, flush=True)
        except BrokenPipeError:
            os._exit(1)


def main() -> int:
    """Run one job; status 1 if any of its cells failed.

    Ctrl-C on a terminal reaches every process there: this one leaves it to its parent, which ends
    it, or else it would record a failure that is none.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    request = read_json(Path(sys.argv[1]))
    assert request is not None
    events = Events(os.fdopen(int(sys.argv[2]), "w", encoding="utf-8"))
    for file in request["plugins"]:
        load_plugin_file(Path(file))
    if request["stage"] == "regress":
        return _regress(request, events)
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
    return _record(failures, "decode", events)


def _check_planned(cell: Cell, planned: Mapping[str, str], stages: Sequence[str]) -> None:
    """Raise RuntimeError where a stage's address is not the planned one in this process: its
    results would count as those of what was planned, or be found by nobody."""
    changed = [stage for stage in stages if cell.addresses[stage] != planned[stage]]
    if changed:
        raise RuntimeError(
            f"A plugin, data or a library of {cell.label} has changed since the run was planned "
            f"(it alters the stage {changed[0]}): run the same command again."
        )


def _regress(request: dict[str, Any], events: Events) -> int:
    from ..regression.job import evaluations_of, run_job

    try:
        failures = run_job(request, events.progress)
    except Exception as error:  # the engine did not start: nothing was evaluated
        traceback.print_exc()
        run, wanted = Path(request["run"]), evaluations_of(request)
        failures = {e.folder(run): error for e in wanted if not e.is_done(run)}
    return _record(failures, "regress", events)


def _record(failures: dict[Path, Exception], stage: str, events: Events) -> int:
    for folder, failure in failures.items():
        record_failure(folder, stage, failure)
        events.send({"event": "failed", "message": str(failure) or type(failure).__name__})
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
