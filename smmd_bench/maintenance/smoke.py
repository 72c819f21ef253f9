"""Every stage once, on the built-in checkpoint: what `smmd-bench doctor --gpu` starts.

    python -m smmd_bench.maintenance.smoke METHOD DTYPE ENGINE

The last line that it prints says what was done, how long it took and how much memory it needed.
"""

from __future__ import annotations

import logging
import resource
import sys
import tempfile
import time
from pathlib import Path

from ..contracts import Checkpoint, EngineSettings
from ..experiment.cell import Cell
from ..experiment.experiment import Experiment
from ..models.tokenizers import load_tokenizer
from ..plugin_system.registry import load_engine
from ..run.pipeline import decode, measure, train
from ..run.run_directory import RunDirectory

_SIZES = {
    "train_examples": 64,
    "validation_examples": 16,
    "test_examples": 64,
    "epochs": 1,
}


def main(method: str, dtype: str, engine: str) -> None:
    """Train with SMMD, decode base and trained weights, and measure, in a temporary run folder."""
    import torch

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
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder) / "run")
        with run.locked():
            run.claim([experiment])
            began = time.monotonic()
            for cell in experiment.cells:
                train(cell, run.path)
            trained = time.monotonic()
            # Before decoding: the memory of an engine is no part of a training's.
            if torch.cuda.is_available():
                memory = torch.cuda.max_memory_allocated()
            else:
                # Linux counts it in kilobytes.
                memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            decode(experiment.cells, run.path)
            measure(experiment.cells, run.path)

        took = time.monotonic() - trained
        print(
            f"{method} in {dtype}: trained in {trained - began:.0f} s with {memory / 1e9:.2f} GB, "
            f"decoded by {engine} in {took:.0f} s; {count_flips(experiment.cells[0])} of "
            f"{_SIZES['test_examples']} answers differ between batches of 1 and of all",
            flush=True,
        )


def count_flips(base: Cell) -> int:
    """Count the answers of an untuned model that change where it is asked for them one by one."""
    model = base.card.folder
    examples = base.task_plugin.examples("test", base.data_seed, base.size("test"))
    texts = [example.prompt for example in examples]
    prompts = load_tokenizer(model)(texts)["input_ids"]
    settings = EngineSettings(max_model_length=256, dtype=base.recipe.dtype)
    checkpoint = Checkpoint("base", "base", model)

    flips = 0
    with load_engine(base.engine).open(model, settings) as session:
        together = session.generate(prompts, checkpoint=checkpoint, max_new_tokens=32)
        for prompt, in_batch in zip(prompts, together, strict=True):
            (alone,) = session.generate(
                [prompt], checkpoint=checkpoint, max_new_tokens=32
            )
            flips += alone.token_ids != in_batch.token_ids

    return flips


if __name__ == "__main__":
    main(*sys.argv[1:])
