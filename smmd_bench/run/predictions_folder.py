"""The run folder of scored predictions: the layout of a run, with a cell for each file.

The cells have no train stage. Their decode address follows from the examples and the completions,
so that a file that changed is scored again, and one that was only moved is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contracts import Split, Task
from ..errors import UserError
from ..models.circumstances import circumstances
from ..plugin_system.registry import load_task
from ..results.frames import FORMAT, read_run
from ..scoring.measure import measure, measure_identity
from ..storage.addresses import address, folder_name
from ..storage.current import CurrentCell
from ..storage.files import read_json, write_json, write_json_if_new, write_parquet
from .comparison import write_comparisons
from .run_directory import RunDirectory, record_failure

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Settings:
    """What is scored, but for the completions. task: a canonical spec; limit: None for all."""

    task: str
    split: Split
    data_seed: int
    limit: int | None
    model: str
    labels: tuple[str, ...]

    @cached_property
    def task_plugin(self) -> Task:
        """The task."""
        return load_task(self.task)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {**asdict(self), "labels": list(self.labels)}


@dataclass(frozen=True, eq=False)
class ScoredFile:
    """One file of completions: a cell. source: what the manifest says of the file."""

    settings: Settings
    label: str
    completions: pd.DataFrame
    source: Mapping[str, Any]

    @cached_property
    def addresses(self) -> dict[str, str]:
        """`train` names the folder and does not follow from the completions; decode, measure."""
        settings, task = self.settings, self.settings.task_plugin
        train = address({"predictions": {**settings.to_dict(), "labels": self.label}})
        texts = self.completions.to_json(orient="split", index=False)
        decode = address(
            {
                "data": dict(task.identity(settings.split, settings.data_seed)),
                "completions": hashlib.blake2b(texts.encode(), digest_size=16).hexdigest(),
            }
        )
        return {
            "train": train,
            "decode": decode,
            "measure": address({"decode": decode, **measure_identity(task)}),
        }

    def to_json(self) -> dict[str, Any]:
        """What cell.json says: the label stands where a run has its loss."""
        settings = self.settings
        return {
            "address": self.addresses["train"],
            "model": settings.model,
            "model_label": settings.model,
            "params": None,
            "task": settings.task,
            "task_name": settings.task_plugin.name,
            "loss": self.label,
            "reference": settings.labels[0],
            "loss_name": self.label.partition("[")[0],
            "seed": 0,
            "data_seed": settings.data_seed,
            "recipe": {},
            "addresses": self.addresses,
        }


def default_folder(files: Sequence[ScoredFile]) -> Path:
    """runs/score_TASK_LABELS_DIGEST; the digest is that of settings and completions."""
    settings = files[0].settings
    content = {**settings.to_dict(), "completions": [f.addresses["decode"] for f in files]}
    return Path("runs") / folder_name(("score", settings.task, *settings.labels), content)


def score_into(folder: Path, files: Sequence[ScoredFile]) -> tuple[bool, dict[str, str]]:
    """Score the files, the first being the reference of the others, and write what is missing.

    Returns whether anything was, and the error of each label whose scoring failed. Raises UserError
    if the folder holds anything else.
    """
    _check(folder, files[0].settings)
    with RunDirectory(folder).locked():
        _check(folder, files[0].settings)
        todo = [file for file in files if _current(folder, file).metrics is None]
        failed = {}
        if todo or not (folder / "manifest.json").exists():
            _write_manifest(folder, files)
        for file in files:
            write_json_if_new(_cell(folder, file) / "cell.json", file.to_json())
        for file in todo:
            if error := _measure(_current(folder, file), file):
                failed[file.label] = error
        return bool(todo) | write_comparisons(read_run(folder)), failed


def _cell(folder: Path, file: ScoredFile) -> Path:
    return folder / "cells" / file.addresses["train"]


def _check(folder: Path, settings: Settings) -> None:
    manifest = read_json(folder / "manifest.json") if folder.is_dir() else {}
    if manifest is None and (strange := {p.name for p in folder.iterdir()} - {".lock"}):
        raise UserError(
            f"The output folder {folder} is not empty and holds no run ({min(strange)}): choose "
            "another with --out."
        )
    if manifest and manifest.get("predictions") != settings.to_dict():
        raise UserError(
            f"The output folder {folder} belongs to another command ({manifest.get('command')}): "
            "choose another with --out."
        )


def _current(folder: Path, file: ScoredFile) -> CurrentCell:
    """The file's cell as it is on disk now."""
    return CurrentCell(_cell(folder, file), file.addresses, is_base=False)


def _measure(cell: CurrentCell, file: ScoredFile) -> str | None:
    """Write a cell's completions, scores and metrics; returns the error of a task that fails."""
    folder, stamp = cell.folder, cell.measure_stamp
    assert cell.decode_stamp is not None
    assert stamp is not None
    (folder / "FAILED.json").unlink(missing_ok=True)
    write_parquet(folder / "completions.parquet", file.completions, cell.decode_stamp)
    try:
        scores, metrics = measure(file.settings.task_plugin, file.completions)
    except Exception as error:  # of the task's own code: the other files go on
        record_failure(folder, "measure", error)
        return f"{type(error).__name__}: {error}"
    write_parquet(folder / "scores.parquet", scores, stamp)
    write_json(folder / "metrics.json", {"address": stamp, **metrics})
    return None


def _write_manifest(folder: Path, files: Sequence[ScoredFile]) -> None:
    settings = files[0].settings
    made = circumstances()
    earlier = read_json(folder / "manifest.json") or made
    write_json(
        folder / "manifest.json",
        {
            "format": FORMAT,
            "name": folder.name,
            "experiment": {
                "models": [settings.model],
                "tasks": [settings.task],
                "losses": list(settings.labels),
                "seeds": [0],
                "data_seed": settings.data_seed,
            },
            "experiments": [],  # none that `train-eval` could add to
            "predictions": settings.to_dict(),
            "files": {file.label: dict(file.source) for file in files},
            **made,
            "created": earlier["created"],
            "data": {
                settings.task: {
                    "licence": getattr(settings.task_plugin, "licence", "not stated"),
                    "sizes": {settings.split: len(files[0].completions)},
                }
            },
            "cells": [file.addresses["train"] for file in files],
        },
    )
