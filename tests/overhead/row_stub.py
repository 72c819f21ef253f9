"""The process of a row, without its training: it says that a step is done. That of ce waits."""

import signal

from smmd_bench.run.process import start

if __name__ == "__main__":
    with start() as (request, events):
        events.send({"event": "progress", "what": "steps", "done": 1, "total": 4})
        if request["row"] == "ce":
            signal.pause()
        events.send({"event": "done", "found": {"steps": [[1, 1]] * 4}})
