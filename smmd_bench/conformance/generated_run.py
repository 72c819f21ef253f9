"""Run folders for reports to be tried on: in the format of a real run, with drawn numbers."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from PIL import Image

from ..registry import load_task
from ..results.files import write_json, write_parquet
from ..scoring.measure import compare, measure
from .generated_cells import KINDS, answered, examples, probes, train_log

_RESAMPLES, _EPOCHS = 10, 2
State = Literal["done", "failed", "skipped", "pending"]


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
            "name": folder.name,
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
    scores = {c: _write_cell(folder / "cells" / c.address, c, frames[c.task], steps) for c in cells}
    for cell, own in scores.items():
        against = ("base", 0) if cell.loss == "ce" else ("ce", cell.seed)
        other = GeneratedCell(cell.model, cell.task, *against)
        others = scores.get(other)
        if own is not None and others is not None and cell.loss != "base":
            write_json(
                folder / "cells" / cell.address / "comparison.json",
                {
                    "address": f"m{cell.address[1:]}", "against": other.address,
                    "against_loss": other.loss,
                    **compare(load_task(cell.task), own, others, resamples=_RESAMPLES),
                },
            )  # fmt: skip
    return folder


def known_tasks() -> list[str]:
    """Those that a generated run can have."""
    return list(KINDS)


def _write_cell(
    folder: Path, cell: GeneratedCell, frame: pd.DataFrame, steps: int
) -> pd.DataFrame | None:
    """Write a cell's files; returns its scores where it has any."""
    stage = {name: f"{name[0]}{cell.address[1:]}" for name in ("train", "decode", "measure")}
    name, seed = cell.loss.partition("[")[0], zlib.crc32(cell.address.encode())
    write_json(
        folder / "cell.json",
        {
            "address": cell.address, "model": cell.model, "model_label": cell.model,
            "task": cell.task, "task_name": cell.task, "loss": cell.loss, "loss_name": name,
            "seed": cell.seed, "recipe": {"epochs": _EPOCHS, "method": "full"},
            "addresses": stage, "params": 2_140_000,
        },
    )  # fmt: skip
    if cell.state in ("failed", "skipped"):
        failure = {"stage": "train", "error": "drawn up", "traceback": "", "address": cell.address}
        write_json(folder / "FAILED.json", {**failure, "skipped": cell.state == "skipped"})
    if cell.state != "done":
        return None
    if name != "base":
        log = train_log(steps, name != "ce", seed)
        write_parquet(folder / "train_log.parquet", log, stage["train"])
    completions = answered(frame, cell.skill, seed)
    write_parquet(folder / "completions.parquet", completions, stage["decode"])
    if (table := probes(frame, cell.skill, seed)).size:
        write_parquet(folder / "probes.parquet", table, stage["decode"])
    task = load_task(cell.task)
    scores, content = measure(task, completions, resamples=_RESAMPLES)
    write_parquet(folder / "scores.parquet", scores, stage["measure"])
    write_json(folder / "metrics.json", {"address": stage["measure"], **content})
    if name != "base":
        first = task.metrics()[0].name
        epochs = [
            {"epoch": e, first: 50 * e / _EPOCHS, "n": len(frame)} for e in range(1, _EPOCHS + 1)
        ]
        write_json(
            folder / "selection.json",
            {"address": stage["decode"], "best_epoch": 2, "metric": first, "epochs": epochs},
        )
    return scores
