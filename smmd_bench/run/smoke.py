"""Every stage once, on the built-in checkpoint: what `smmd-bench doctor --gpu` starts.

    python -m smmd_bench.run.smoke METHOD DTYPE ENGINE

The last line that it prints says what was done, how long it took and how much memory it needed.
"""

from __future__ import annotations

import logging
import resource
import sys
import tempfile
import time
from pathlib import Path

from ..experiment.experiment import Experiment
from .pipeline import decode, measure, train
from .run_directory import RunDirectory

_SIZES = {"train_examples": 64, "validation_examples": 16, "test_examples": 64, "epochs": 1}


def main(method: str, dtype: str, engine: str) -> None:
    """Train with SMMD, decode base and trained weights, and measure, in a temporary run folder."""
    import torch

    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("smmd_bench").setLevel(logging.INFO)
    recipe = {**_SIZES, "method": method, "dtype": dtype}
    experiment = Experiment(
        tasks=("arithmetic",), losses=("smmd",), engine=engine, transfers=False, recipe=recipe
    )
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder) / "run")
        with run.locked():
            run.claim([experiment])
            began = time.monotonic()
            for cell in experiment.cells:
                train(cell, run.path)
            trained = time.monotonic()
            if torch.cuda.is_available():
                memory = torch.cuda.max_memory_allocated()
            else:
                memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            decode(experiment.cells, run.path)
            measure(experiment.cells, run.path)
        print(
            f"{method} in {dtype}: trained in {trained - began:.0f} s with {memory / 1e9:.2f} GB, "
            f"decoded by {engine} in {time.monotonic() - trained:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
