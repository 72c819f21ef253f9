"""Run folders for reports to be tried on: in the format of a real run, with drawn numbers."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from PIL import Image

from ..errors import CellSkippedError
from ..plugin_system.registry import load_task
from ..results.frames import FORMAT, read_run
from ..run.comparison import write_comparisons
from ..run.run_directory import record_failure
from ..scoring.measure import measure
from ..storage.files import write_json
from .generated_cells import KINDS, answered, examples, probes, train_log
from .stamped_cell import addresses_of, write_measured, write_trained

_RESAMPLES, _EPOCHS = 10, 2
State = Literal["done", "failed", "skipped", "pending"]
_FAILURES: dict[State, str | Exception] = {
    "failed": "drawn up",
    "skipped": CellSkippedError("drawn up"),
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
        """What share of the test it gets right."""
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

    def distinct(values: Iterable[Any]) -> list[Any]:
        return list(dict.fromkeys(values))

    tasks = distinct(c.task for c in cells)
    write_json(
        folder / "manifest.json",
        {
            "format": FORMAT,
            "name": folder.name,
            "cells": [cell.address for cell in cells],
            "experiment": {
                "models": distinct(c.model for c in cells),
                "tasks": tasks,
                "losses": distinct(c.loss for c in cells if c.loss != "base"),
                "seeds": distinct(c.seed for c in cells),
            },
            "versions": {"smmd-bench": "generated"},
            "created": "2026-01-02T03:04:05+00:00",
            "command": "smmd-bench validate",
            "data": {
                task: {
                    "sizes": {"train": 10 * n, "validation": n, "test": n},
                    "identity": {"test": {"source": "synthetic"}},
                }
                for task in tasks
            },
        },
    )
    (folder / "cells").mkdir(exist_ok=True)
    picture = folder / "picture.png"
    Image.new("RGB", (32, 24), "white").save(picture)
    frames = {task: examples(task, n, picture) for task in tasks}
    for cell in cells:
        _write_cell(folder / "cells" / cell.address, cell, frames[cell.task], steps)
    write_comparisons(read_run(folder), resamples=_RESAMPLES)
    return folder


def known_tasks() -> list[str]:
    """Those that a generated run can have."""
    return list(KINDS)


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
        if cell.state in ("failed", "skipped"):
            record_failure(folder, "train", _FAILURES[cell.state])
        return
    task = load_task(cell.task)
    first = task.metrics()[0].name
    epochs = [{"epoch": e, first: 50 * e / _EPOCHS, "n": len(frame)} for e in range(1, _EPOCHS + 1)]
    log = None if name == "base" else train_log(steps, name != "ce", seed)
    trained = write_trained(
        folder, content, log, {"best_epoch": _EPOCHS, "metric": first, "epochs": epochs}
    )
    completions = answered(frame, cell.skill, seed)
    scores, metrics = measure(task, completions, resamples=_RESAMPLES)
    write_measured(trained, completions, probes(frame, cell.skill, seed), scores, metrics)
