"""Every stage once, on the built-in checkpoint: what `smmd-bench doctor --gpu` starts.

    python -m smmd_bench.maintenance.smoke METHOD DTYPE ENGINE

As each of `PARTS` ends, a line says how long it took. The last line that it prints says what was
done, how long it took and how much memory it needed.
"""

from __future__ import annotations

import faulthandler
import logging
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..contracts import Checkpoint, EngineSession
from ..experiment.cell import Cell
from ..experiment.experiment import Experiment
from ..models.tokenizers import load_tokenizer
from ..run.pipeline import measure, train
from ..run.run_directory import RunDirectory

PARTS = (
    "loading", "training", "engine start", "flips", "decoding", "measuring", "exit",
)  # fmt: skip
"""What this process does, in order; a line `PART: SECONDS s` says that one has ended, and of the
last one its exit status."""
_SIZES = {
    "train_examples": 64,
    "validation_examples": 16,
    "test_examples": 64,
    "epochs": 1,
}


class Stopwatch:
    """Prints how long each part took, as it ends."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def end(self, part: str, more: str = "") -> float:
        """Print that a part has ended, and begin the next; returns its seconds."""
        seconds = time.monotonic() - self._began
        self._began += seconds
        # The first newline ends a progress bar. Without a flush, a part that hangs would hide
        # those before it.
        print(f"\n{part}: {seconds:.1f} s{more}", flush=True)
        return seconds


def main(method: str, dtype: str, engine: str) -> None:
    """Train with SMMD, decode base and trained weights, and measure, in a temporary run folder."""
    watch = Stopwatch()
    # The doctor sends this signal when its patience ends: the stack says where the time goes.
    faulthandler.register(signal.SIGALRM, all_threads=False, chain=True)
    # Torch is a part of the loading.
    import torch

    from ..decoding.stage import decode_cells

    # The notes of the canary are logged, and the doctor reads them.
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("smmd_bench").setLevel(logging.INFO)
    recipe = {**_SIZES, "method": method, "dtype": dtype}
    experiment = Experiment(
        tasks=("arithmetic",),
        losses=("smmd",),
        engine=engine,
        transfers=False,  # of which each would be decoded, too
        recipe=recipe,
    )
    cells = experiment.cells
    flips = 0

    def use_engine(session: EngineSession) -> None:
        nonlocal flips
        watch.end("engine start")
        base, prompts = _encode_prompts(cells[0])
        flips = count_flips(session, base, prompts)["alone"]
        watch.end("flips")

    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder) / "run")
        with run.locked():
            run.claim([experiment])
            watch.end("loading")

            for cell in cells:
                train(cell, run.path)
            # Before decoding: the memory of an engine is no part of a training's.
            peak = torch.cuda.max_memory_allocated()
            # Without a GPU that is 0; Linux counts the process's own in kilobytes.
            peak = peak or 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            trained = watch.end("training", f", {peak / 1e9:.2f} GB")

            # The flips share its engine: a start takes longer than all that is decoded.
            failed = decode_cells(cells, run.path, lambda *_: None, use_engine)
            for error in failed.values():
                raise error
            decoded = watch.end("decoding")
            measure(cells, run.path)
            watch.end("measuring")

    print(
        f"{method} in {dtype}: trained in {trained:.0f} s with {peak / 1e9:.2f} GB, "
        f"decoded by {engine} in {decoded:.0f} s; {flips} of {_SIZES['test_examples']} answers "
        "differ between batches of 1 and of all",
        flush=True,
    )


def _encode_prompts(cell: Cell) -> tuple[Checkpoint, list[list[int]]]:
    """The untuned checkpoint of a cell, and the token ids of its test prompts."""
    examples = cell.task_plugin.examples("test", cell.data_seed, cell.size("test"))
    texts = [example.prompt for example in examples]
    folder = cell.card.folder
    ids = load_tokenizer(folder)(texts)["input_ids"]
    return Checkpoint("base", "base", folder), ids


def count_flips(
    session: EngineSession, checkpoint: Checkpoint, prompts: Sequence[Sequence[int]]
) -> dict[str, int]:
    """Count the answers that change where they are asked for one by one (`alone`), or `again`."""
    ask = partial(session.generate, checkpoint=checkpoint, max_new_tokens=32)
    together = ask(prompts)
    others = {
        "alone": [ask([prompt])[0] for prompt in prompts],
        "again": ask(prompts),
    }

    flips = {}
    for way, answers in others.items():
        pairs = zip(together, answers, strict=True)
        changed = [one.token_ids != other.token_ids for one, other in pairs]
        flips[way] = sum(changed)
    return flips


if __name__ == "__main__":
    main(*sys.argv[1:])
