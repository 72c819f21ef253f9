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
from functools import partial
from pathlib import Path

from ..contracts import Checkpoint, EngineSettings
from ..errors import UserError
from ..experiment.experiment import Experiment
from ..models.cards import model_card
from ..models.tokenizers import load_tokenizer
from ..plugin_system.registry import load_engine, load_task
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
        flips = count_flips("builtin/tiny", engine, dtype, _SIZES["test_examples"])
        print(
            f"{method} in {dtype}: trained in {trained - began:.0f} s with {memory / 1e9:.2f} GB, "
            f"decoded by {engine} in {took:.0f} s; {flips['base alone']} of "
            f"{_SIZES['test_examples']} answers differ between batches of 1 and of all",
            flush=True,
        )


def count_flips(
    model: str, engine: str, dtype: str, examples: int, run: Path | None = None
) -> dict[str, int]:
    """Count the answers that change where they are asked for one by one, or once more.

    The keys are "base alone" and "base again"; given a run, also "adapter alone" and "adapter
    again", of the first adapter there. Raises UserError if the run has none.
    """
    base = model_card(model).folder
    prompts = load_task("arithmetic").examples("test", 0, examples)
    ids = load_tokenizer(base)([example.prompt for example in prompts])["input_ids"]
    checkpoints = [Checkpoint("base", "base", base)]
    if run is not None:
        adapters = sorted(run.glob("train/*/epochs/*/adapter_config.json"))
        if not adapters:
            raise UserError(f"{run} has no adapter: train one there first.")
        checkpoints.append(Checkpoint("adapter", "lora", adapters[0].parent))
    settings = EngineSettings(
        max_model_length=256, dtype=dtype, adapters=run is not None
    )

    flips = {}
    with load_engine(engine).open(base, settings) as session:
        for checkpoint in checkpoints:
            ask = partial(session.generate, checkpoint=checkpoint, max_new_tokens=32)
            together = ask(ids)
            alone = [ask([prompt])[0] for prompt in ids]
            for way, answers in (("alone", alone), ("again", ask(ids))):
                pairs = zip(together, answers, strict=True)
                changed = sum(a.token_ids != b.token_ids for a, b in pairs)
                flips[f"{checkpoint.name} {way}"] = changed

    return flips


if __name__ == "__main__":
    main(*sys.argv[1:])
