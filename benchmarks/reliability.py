"""Does the canary see it when an engine runs other weights than a checkpoint's?

    python -m benchmarks.reliability

For each of three architectures: a tiny base, CE and SMMD adapters of as many seeds as there are
repeats, two epochs each, in bfloat16, trained by the harness's own stage; full checkpoints for the
prefix cache. Then both engines, real ones, are given each checkpoint with its own weights, and with
those of a sabotage under its name. A sabotage that passes is `indistinguishable` where the rule,
from the weights' log-probabilities in float32 alone, says beforehand that it does not see them,
and `missed` otherwise. The tables of docs/reliability.md are written again.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import contextlib
import io
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from smmd_bench.plugins.engines import _session

from smmd_bench.contracts import Checkpoint, EngineSettings
from smmd_bench.decoding import canary_check
from smmd_bench.models.loading import quiet_libraries
from smmd_bench.plugin_system.registry import load_engine

from .families import ARCHITECTURES, RATES, Family, make_base, train_family
from .reliability_page import PAGE, Measured, write_tables
from .sabotages import DTYPE, Attempt, attempts, outcome

SETTINGS = EngineSettings(
    dtype=DTYPE, max_model_length=512, adapters=True, memory_gb=0.25, max_log_probabilities=10
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--architectures", nargs="+", default=list(ARCHITECTURES))
    parser.add_argument("--engines", nargs="+", default=["transformers", "vllm"])
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    began = time.monotonic()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    quiet_libraries()
    measured = Measured()
    with tempfile.TemporaryDirectory() as folder:
        for architecture in options.architectures:
            place = Path(folder) / architecture
            measure(architecture, place, options.repeats, options.engines, measured)
    write_tables(options.page, measured, options.repeats, sys.argv[1:], time.monotonic() - began)
    sys.exit(1 if measured.missed() or measured.false_alarms() else 0)


def measure(
    architecture: str, place: Path, repeats: int, engines: list[str], measured: Measured
) -> None:
    """All rows of one architecture."""
    seeds = list(range(repeats))
    with contextlib.redirect_stdout(io.StringIO()):  # the Trainer's lines
        base = make_base(architecture, place / "base")
        adapters = train_family(base, place / "adapters", ["ce", "smmd"], seeds)
        full = adapters
        if "vllm" in engines:
            full = train_family(base, place / "full", ["ce"], seeds, method="full", epochs=1)
        tried = attempts(adapters, place / "wrong", architecture)
    for engine in engines:
        with load_engine(engine).open(base, SETTINGS) as session, recorded() as seen:
            run_adapters(adapters, tried, architecture, engine, session, seen, measured)
    if "vllm" in engines:
        settings = replace(SETTINGS, adapters=False)
        with load_engine("vllm").open(base, settings) as session, recorded() as seen:
            run_stale(full, architecture, session, seen, measured)


def run_adapters(
    family: Family,
    tried: list[Attempt],
    architecture: str,
    engine: str,
    session: Any,
    seen: dict[str, Any],
    measured: Measured,
) -> None:
    """The right weights of every checkpoint, then each sabotage once a seed."""
    for checkpoint in family.checkpoints.values():
        measured.right[engine, "LoRA"][outcome(session, checkpoint)] += 1
        assert checkpoint.canary is not None
        measured.add(architecture, engine, checkpoint.canary, seen[checkpoint.name])
    for attempt in tried:
        said = outcome(session, attempt.checkpoint)
        if said == "passed":
            said = "indistinguishable" if attempt.alike else "missed"
        measured.rows[attempt.name, RATES[attempt.seed % len(RATES)], engine][said] += 1


def run_stale(
    family: Family, architecture: str, session: Any, seen: dict[str, Any], measured: Measured
) -> None:
    """Each full checkpoint after another one, without and with a reset of the prefix cache."""
    checkpoints = list(family.checkpoints.values())
    llm = session._llm
    for key, before in zip(family.checkpoints, [checkpoints[-1], *checkpoints[:-1]], strict=True):
        checkpoint = family.checkpoints[key]
        assert checkpoint.canary is not None
        outcome(session, before)
        llm.reset_prefix_cache = lambda: True
        said = outcome(session, checkpoint)
        del llm.reset_prefix_cache
        stale = seen[checkpoint.name]
        llm.reset_prefix_cache()
        session._current = None  # or the right weights would not be checked again
        measured.right["vllm", "full"][outcome(session, checkpoint)] += 1
        if said == "passed":
            moved = zip(
                checkpoint.canary.log_probabilities, stale, seen[checkpoint.name], strict=True
            )
            exact = [tuple(np.add(known, np.subtract(a, b))) for known, a, b in moved]
            alike = canary_check.could_pass(checkpoint.canary, exact, DTYPE)
            said = "indistinguishable" if alike else "missed"
        rate = RATES[key[1] % len(RATES)]
        measured.rows["a stale prefix cache", rate, "vllm"][said] += 1
        measured.add(architecture, "vllm, full", checkpoint.canary, seen[checkpoint.name])


@contextlib.contextmanager
def recorded() -> Iterator[dict[str, Any]]:
    """What sessions hand to the check, by the checkpoint's name."""
    seen: dict[str, Any] = {}

    def check(checkpoint: Checkpoint, rows: Any, dtype: str) -> None:
        seen[checkpoint.name] = rows
        canary_check.check_canary(checkpoint, rows, dtype)

    module: Any = _session
    module.check_canary = check
    try:
        yield seen
    finally:
        module.check_canary = canary_check.check_canary


if __name__ == "__main__":
    main()
