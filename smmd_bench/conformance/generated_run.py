"""Run folders for reports to be tried on: in the format of a real run, with drawn numbers."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd
from PIL import Image

from ..errors import CellSkippedError
from ..plugin_system.registry import load_task
from ..results.frames import FORMAT, read_run
from ..run.comparison import write_comparisons
from ..run.run_directory import record_failure
from ..scoring.measure import measure
from ..storage.files import write_json
from .generated_cells import answered, examples, probes, train_log
from .stamped_cell import addresses_of, write_measured, write_trained

_RESAMPLES, _EPOCHS = 10, 2
State = Literal["done", "failed", "skipped", "pending"]
_FAILURES: dict[State, str | Exception] = {
    "failed": "made up",
    "skipped": CellSkippedError("made up"),
}


@dataclass(frozen=True)
class GeneratedCell:
    """A cell of a generated run; `loss` is a name or spec, `base` for the untuned model."""

    model: str
    task: str
    loss: str
    seed: int
    state: State = "done"

    @property
    def address(self) -> str:
        """16 digits that follow from what the cell is."""
        text = repr((self.model, self.task, self.loss, self.seed))
        return f"{zlib.crc32(text.encode()):08x}{zlib.crc32(text[::-1].encode()):08x}"

    @property
    def skill(self) -> float:
        """The share of the test that it gets right."""
        return 0.2 + zlib.crc32(self.address.encode()) % 500 / 1000


def matrix(
    models: Sequence[str], tasks: Sequence[str], losses: Sequence[str], seeds: Sequence[int]
) -> list[GeneratedCell]:
    """All pairs, after the untuned base of each model and task."""
    return [
        cell
        for model in models
        for task in tasks
        for cell in (
            GeneratedCell(model, task, "base", 0),
            *(GeneratedCell(model, task, loss, seed) for loss in losses for seed in seeds),
        )
    ]


def write_run(folder: Path, cells: Sequence[GeneratedCell], n: int = 24, steps: int = 40) -> Path:
    """Write a run folder with these cells; returns it."""
    tasks = list(dict.fromkeys(cell.task for cell in cells))
    sizes = {"train": 10 * n, "validation": n, "test": n}
    data = {"sizes": sizes, "identity": {"test": {"source": "synthetic"}}}
    experiment = {
        "models": list(dict.fromkeys(cell.model for cell in cells)),
        "tasks": tasks,
        "losses": list(dict.fromkeys(cell.loss for cell in cells if cell.loss != "base")),
        "seeds": list(dict.fromkeys(cell.seed for cell in cells)),
    }
    manifest = {
        "format": FORMAT,
        "name": folder.name,
        "cells": [cell.address for cell in cells],
        "experiment": experiment,
        "versions": {"smmd-bench": "generated"},
        "created": "2026-01-02T03:04:05+00:00",
        "command": "smmd-bench validate",
        "data": dict.fromkeys(tasks, data),
    }
    write_json(folder / "manifest.json", manifest)
    (folder / "cells").mkdir(exist_ok=True)
    picture = folder / "picture.png"
    Image.new("RGB", (32, 24), "white").save(picture)
    frames = {task: examples(task, n, picture) for task in tasks}
    for cell in cells:
        _write_cell(folder / "cells" / cell.address, cell, frames[cell.task], steps)
    write_comparisons(read_run(folder), resamples=_RESAMPLES)
    return folder


def _write_cell(folder: Path, cell: GeneratedCell, frame: pd.DataFrame, steps: int) -> None:
    """Write a cell's files."""
    name, seed = cell.loss.partition("[")[0], zlib.crc32(cell.address.encode())
    content = {
        "address": cell.address, "model": cell.model, "model_label": cell.model,
        "task": cell.task, "task_name": cell.task, "loss": cell.loss, "loss_name": name,
        "seed": cell.seed, "recipe": {"epochs": _EPOCHS, "method": "full"},
        "addresses": addresses_of(cell.address), "params": 2_140_000,
    }  # fmt: skip
    if cell.state != "done":
        write_json(folder / "cell.json", content)
        if cell.state in _FAILURES:
            record_failure(folder, "train", _FAILURES[cell.state])
        return
    task = load_task(cell.task)
    metric = task.metrics()[0].name
    epochs = [{"epoch": e, metric: 50 * e / _EPOCHS, "n": len(frame)} for e in (1, _EPOCHS)]
    log = None if name == "base" else train_log(steps, name != "ce", seed)
    selection = {"best_epoch": _EPOCHS, "metric": metric, "epochs": epochs}
    trained = write_trained(folder, content, log, selection)
    completions = answered(frame, cell.skill, seed)
    scores, metrics = measure(task, completions, resamples=_RESAMPLES)
    write_measured(trained, completions, probes(frame, cell.skill, seed), scores, metrics)
