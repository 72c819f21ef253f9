"""The process in which a regression job runs: `python -m smmd_bench.regression.worker`."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from ..run.events import start
from .job import evaluations_of, run_job


def main() -> int:
    """Run one job; status 1 if any of its evaluations failed."""
    request, events = start()
    try:
        failures = run_job(request, events.progress)
    except Exception as error:  # the engine did not start: nothing was evaluated
        traceback.print_exc()
        run, wanted = Path(request["run"]), evaluations_of(request)
        failures = {e.folder(run): error for e in wanted if not e.is_done(run)}
    return events.record(failures, "regress")


if __name__ == "__main__":
    sys.exit(main())
