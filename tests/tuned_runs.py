"""A synthetic run with tuned losses, and the trials that each of them chose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from smmd_bench.conformance.stamped_cell import addresses_of, write_measured, write_trained
from smmd_bench.plugin_system.tuned_label import is_tuned, untuned_label
from smmd_bench.results.frames import RunFrames, read_run
from smmd_bench.run.comparison import write_comparisons
from smmd_bench.storage.current import current_cell
from smmd_bench.storage.files import read_json, write_json
from tests.runs import quick_run, task_of

LOSSES = ("ce", "ce[tuned]", "smmd", "smmd[tuned]")
GRIDS = {"ce": ("learning_rate=0.001", "learning_rate=0.002"), "smmd": ("lambda=1", "lambda=10")}


def tuned_run(
    path: Path,
    chosen: Mapping[str, Sequence[int]] = {"ce": (0, 1), "smmd": (1, 1)},
    grids: Mapping[str, Sequence[str]] = GRIDS,
    **names: Any,
) -> RunFrames:
    """A quick run of CE and SMMD, as published and tuned: `chosen` are, by loss, the places in the
    grid that its seeds choose."""
    seeds = tuple(range(len(chosen["ce"])))
    run = quick_run(path, losses=LOSSES, seeds=seeds, **names)
    tried = []
    for cell in run.cells.to_dict("records"):
        if is_tuned(str(cell["loss"])):
            name = untuned_label(str(cell["loss"]))
            folder = path / "cells" / str(cell["address"])
            tried += _tune(folder, grids[name], chosen[name][int(cell["seed"])])
    manifest = read_json(path / "manifest.json") or {}
    write_json(path / "manifest.json", {**manifest, "trials": tried})
    for file in path.glob("cells/*/comparison.json"):
        file.unlink()
    write_comparisons(read_run(path), task_of, resamples=20)
    return read_run(path)


def _tune(folder: Path, grid: Sequence[str], chosen: int) -> list[str]:
    """Make a cell one that chose among trials of these settings; returns their addresses."""
    content = read_json(folder / "cell.json") or {}
    selection = read_json(folder / "selection.json") or {}
    del selection["address"]
    frames = {name: pd.read_parquet(folder / f"{name}.parquet") for name in _FRAMES}
    metrics = read_json(folder / "metrics.json") or {}
    del metrics["address"]
    trials = [f"t{at}{folder.name[2:]}" for at in range(len(grid))]
    for text, address in zip(grid, trials, strict=True):
        trial = {
            **content, "address": address, "addresses": addresses_of(address),
            "loss": f"{content['loss_name']}[{text}]",
        }  # fmt: skip
        write_trained(folder.parent / address, trial, frames["train_log"], selection)
    for name in ("train.json", "selection.json", "train_log.parquet"):
        (folder / name).unlink()
    points = [{"text": text, "loss": content["loss_name"], "settings": {}} for text in grid]
    content |= {"grid": points, "trials": trials}
    write_json(folder / "cell.json", content)
    values = [50.0 + (1 + content["seed"]) * (at == chosen) for at in range(len(grid))]
    lines = [
        {"address": address, "text": text, "epoch": 1, "value": value, "low": 40.0, "high": 60.0,
         "n": 100}
        for address, text, value in zip(trials, grid, values, strict=True)
    ]  # fmt: skip
    said = {"metric": "exact_match", "chosen": trials[chosen], "trials": lines}
    stamp = current_cell(folder, content).choice_stamp
    write_json(folder / "choice.json", {"address": stamp, **said})
    measured = (frames[name] for name in ("completions", "probes", "scores"))
    write_measured(current_cell(folder, content), *measured, metrics)
    return trials


_FRAMES = ("completions", "probes", "scores", "train_log")
