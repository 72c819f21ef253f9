"""A synthetic run with tuned losses, and the trials that each of them chose from."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from smmd_bench.plugin_system.parameters import is_tuned, untuned_label
from smmd_bench.results.frames import RunFrames, read_run
from smmd_bench.run.comparison import write_comparisons
from smmd_bench.storage.cell import stored_cell
from smmd_bench.storage.files import read_json, write_json
from tests.runs import parts_of, quick_run, task_of, write_measured, write_trained

LOSSES = ("ce", "ce[tuned]", "smmd", "smmd[tuned]")
GRIDS = {
    "ce": ("learning_rate=0.001", "learning_rate=0.002"),
    "smmd": ("lambda=1", "lambda=10"),
}
CHOSEN = {"ce": (0, 1), "smmd": (1, 1)}
"""The places in the grid of a loss that its seeds choose."""


def tuned_run(
    path: Path, grids: Mapping[str, Sequence[str]] = GRIDS, **names: Any
) -> RunFrames:
    """A quick run of CE and SMMD, as published and tuned."""
    run = quick_run(path, losses=LOSSES, seeds=(0, 1), **names)
    cells = []
    for content in run.rows:
        loss, seed = content["loss"], content["seed"]
        if is_tuned(loss):
            name = untuned_label(loss)
            content = _tune(run, content, grids[name], CHOSEN[name][seed])
        cells.append(content)

    manifest = read_json(path / "manifest.json") or {}
    write_json(path / "manifest.json", {**manifest, "cells": cells})
    write_comparisons(read_run(path), task_of, resamples=20)
    return read_run(path)


def _tune(
    run: RunFrames, content: Mapping[str, Any], grid: Sequence[str], chosen: int
) -> dict[str, Any]:
    """Make a cell one that chose among trials of these settings; what the manifest says of it."""
    cell = run.current(content["address"])
    names = ("completions", "probes", "scores", "train_log")
    frames = {name: pd.read_parquet(cell.place(name)) for name in names}
    metrics, selection = cell.metrics, cell.selection
    addresses = [f"t{at}{content['address'][2:]}" for at in range(len(grid))]
    trials = [
        {"address": at, "parts": parts_of(at), "loss": "smmd"} for at in addresses
    ]

    for trial in trials:
        for stage in ("decode", "measure"):
            del trial["parts"][stage]
        write_trained(run.path, trial, frames["train_log"], selection)

    points = [
        {"text": text, "loss": content["loss_name"], "settings": {}} for text in grid
    ]
    parts = {
        k: v for k, v in content["parts"].items() if k not in ("train", "validate")
    }
    tuned = {**content, "parts": parts, "grid": points, "trials": trials}
    values = [50.0 + (1 + content["seed"]) * (at == chosen) for at in range(len(grid))]
    lines = [
        {"address": address, "text": text, "epoch": 1, "value": value, "low": 40.0, "high": 60.0,
         "n": 100}
        for address, text, value in zip(addresses, grid, values, strict=True)
    ]  # fmt: skip
    choice = {"metric": "exact_match", "chosen": chosen, "trials": lines}
    write_json(stored_cell(run.path, tuned).selected / "selection.json", choice)
    measured = (frames[name] for name in ("completions", "probes", "scores"))
    write_measured(stored_cell(run.path, tuned), *measured, metrics)
    return tuned
