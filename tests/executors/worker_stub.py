"""A job for the tests of executors: it says what it sees, waits, and ends as it is told to."""

import os
import signal
import sys
import time

from smmd_bench.contracts.executor import SHARES_GPU
from smmd_bench.run.process import start


def main() -> int:
    with start() as (request, events):
        events.watch()
        told = request["told"]
        seen = {
            name: os.environ.get(name)
            for name in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", SHARES_GPU)
        }
        events.send({"event": "progress", "what": f"{seen}", "done": 0, "total": 1})
        events.send({"event": "progress", "what": "began", "done": 0, "total": 1})
        time.sleep(told.get("seconds", 0))
        if told.get("dies") or (told.get("dies_beside") and SHARES_GPU in os.environ):
            os.kill(os.getpid(), signal.SIGKILL)
        if told.get("fails"):
            events.send({"event": "failed", "message": "as it was told to"})
            return 1
        events.send({"event": "progress", "what": "ended", "done": 1, "total": 1})
    return 0


if __name__ == "__main__":
    sys.exit(main())
